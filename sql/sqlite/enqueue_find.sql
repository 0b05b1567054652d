-- enqueue_find: look up the quantity already recorded under an id.
--
-- Parameters
--   :id  text  identifier of the job
-- Result     optional; qty
-- Called by  lease.jobs._enqueue.enqueue
-- Plan       sqlite_autoindex_jobs_1
--
-- Looked up before the insert, under the write lock: an insert that a constraint turns away
-- would still use up a seq and write the file.
SELECT qty
FROM jobs
WHERE id = :id;
