-- stats_states: count jobs, and the claims made of them, by state and reason.
--
-- Parameters
--   none
-- Result     many; status, reason, jobs, claims
-- Called by  lease.jobs._stats.stats
-- Plan       scan (the tally has 7 totals and 8 blocks of 128 jobs)
--
-- A token is the number of claims ever made of its job, so that their sum is that of all jobs.
-- Only those reasons are told apart that a dead job gets here; any other is ''.
SELECT
    counted.status,
    counted.reason,
    sum(counted.jobs) AS jobs,
    sum(counted.claims) AS claims
FROM (
    SELECT
        tally_totals.status,
        tally_totals.reason,
        tally_totals.jobs,
        tally_totals.claims
    FROM tally_totals
    UNION ALL
    SELECT
        counted_jobs.status,
        counted_jobs.reason,
        1 AS jobs,
        counted_jobs.claims
    FROM tally_busy
    CROSS JOIN counted_jobs
    WHERE counted_jobs.seq BETWEEN tally_busy.block << 7 AND tally_busy.block << 7 | 127
) AS counted
GROUP BY counted.status, counted.reason
HAVING sum(counted.jobs) <> 0;
