-- dead_ids_newest: tell the place of the newest job, beyond which no page goes.
--
-- Parameters
--   none
-- Result     optional; seq
-- Called by  lease.jobs._dead_ids.dead_ids
-- Plan       PRIMARY KEY
SELECT newest.seq
FROM jobs AS newest
WHERE newest.seq = (SELECT max(jobs.seq) FROM jobs);
