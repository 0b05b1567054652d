-- tally_check: list the totals that are not what the quiet blocks hold.
--
-- Parameters
--   none
-- Result     many; status, reason, surplus_jobs, surplus_claims
-- Called by  lease.jobs._tally.tally_check
-- Plan       scan (every job is counted)
--
-- A surplus is by how much a total is too high, and negative where it is too low.
SELECT
    counted.status,
    counted.reason,
    sum(counted.jobs) AS surplus_jobs,
    sum(counted.claims) AS surplus_claims
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
        -1 AS jobs,
        -counted_jobs.claims AS claims
    FROM counted_jobs
    WHERE
        NOT EXISTS (
            SELECT 1
            FROM tally_busy
            WHERE tally_busy.block = counted_jobs.seq >> 7
        )
) AS counted
GROUP BY counted.status, counted.reason
HAVING sum(counted.jobs) <> 0 OR sum(counted.claims) <> 0
ORDER BY counted.status ASC, counted.reason ASC;
