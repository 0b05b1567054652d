-- outbox_job: look up what became of the job that delivers a record.
--
-- Parameters
--   :id  text  identifier of the record, and of its job
-- Result     optional; qty, status, reason, available_at, token, attempts
-- Called by  lease.outbox._job.job_of
-- Plan       sqlite_autoindex_jobs_1
--
-- Runs on the queue, which may be another file than the outbox. Of a job that is done,
-- available_at is the instant at which it became so.
SELECT
    qty,
    status,
    reason,
    available_at,
    token,
    attempts
FROM jobs
WHERE id = :id;
