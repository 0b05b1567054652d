-- stats_bare_states: count jobs by state and reason in a file without the tally.
--
-- Parameters
--   none
-- Result     many; status, reason, jobs, claims
-- Called by  lease.jobs._stats.stats
-- Plan       scan (every job is counted)
SELECT
    status,
    reason,
    count(*) AS jobs,
    sum(
        CASE
            WHEN typeof(token) = 'integer' AND token BETWEEN 0 AND 1000000000000 THEN token
            ELSE 0
        END
    ) AS claims
FROM jobs
GROUP BY status, reason;
