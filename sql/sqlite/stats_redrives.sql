-- stats_redrives: count the audit rows that redrives have left.
--
-- Parameters
--   none
-- Result     one; redrives
-- Called by  lease.jobs._stats.stats
-- Plan       scan (every row is counted)
SELECT count(*) AS redrives
FROM redrives;
