-- redrive_find: look up the state of a job.
--
-- Parameters
--   :job_id  text  identifier of the job
-- Result     optional; status
-- Called by  lease.jobs._redrive.redrive
-- Plan       sqlite_autoindex_jobs_1
SELECT status
FROM jobs
WHERE id = :job_id;
