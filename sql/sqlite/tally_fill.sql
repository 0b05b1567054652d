-- tally_fill: count every job into the totals.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tally.tally_rebuild
-- Plan       scan (every job is counted)
INSERT INTO tally_totals (status, reason, jobs, claims)
SELECT
    status,
    reason,
    count(*) AS jobs,
    sum(claims) AS claims
FROM counted_jobs
GROUP BY status, reason;
