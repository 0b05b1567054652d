-- stats_states: count jobs, and the claims made of them, by state and reason.
--
-- Parameters
--   none
-- Result     many; status, reason, jobs, claims
-- Called by  lease.jobs._stats.stats
-- Plan       scan (every job is counted)
--
-- A token is the number of claims ever made of its job, so that their sum is that of all jobs.
SELECT
    status,
    reason,
    count(*) AS jobs,
    sum(token) AS claims
FROM jobs
GROUP BY status, reason;
