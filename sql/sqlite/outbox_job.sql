-- outbox_job: look up what became of the job that delivers a record.
--
-- Parameters
--   :id  text  identifier of the record, and of its job
-- Result     optional; qty, status, reason
-- Called by  lease.outbox._job.job_of
-- Plan       sqlite_autoindex_jobs_1
--
-- Runs on the queue, which may be another file than the outbox.
SELECT
    qty,
    status,
    reason
FROM jobs
WHERE id = :id;
