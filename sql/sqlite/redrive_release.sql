-- redrive_release: put a dead job back in line with a fresh budget and a new deadline.
--
-- Parameters
--   :job_id  text     identifier of the job
--   :now_ms  integer  caller's clock, milliseconds
--   :ttl_ms  integer  time to live, milliseconds
-- Result     count
-- Called by  lease.jobs._redrive.redrive
-- Plan       sqlite_autoindex_jobs_1
--
-- The token is kept, so that a worker from before the quarantine stays refused.
UPDATE jobs
SET
    status = 'pending',
    attempts = 0,
    available_at = :now_ms,
    deadline = :now_ms + :ttl_ms,
    owner = NULL,
    lease_until = NULL,
    reason = NULL
WHERE id = :job_id AND status = 'dead';
