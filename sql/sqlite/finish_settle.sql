-- finish_settle: record what a send came to, for the holder of the current lease alone.
--
-- Parameters
--   :id           text     identifier of the job
--   :qty          integer  quantity of the ticket
--   :owner        text     identifier of the worker
--   :token        integer  fencing token of the ticket
--   :attempt      integer  attempt of the ticket
--   :lease_until  integer  lease end of the ticket, milliseconds
--   :outcome      text     ok, retry or permanent
--   :now_ms       integer  caller's clock, milliseconds
--   :delay_ms     integer  delay before the next attempt, milliseconds
-- Result     optional; status
-- Called by  lease.jobs._finish.finish, lease.jobs._settle.settle
-- Plan       sqlite_autoindex_jobs_1
--
-- No row means a stale ticket: the lease or the deadline has ended, or the job has moved on.
-- Used-up attempts are the reason even where the delay would also miss the deadline.
UPDATE jobs
SET
    status = CASE
        WHEN :outcome = 'ok' THEN 'done'
        WHEN :outcome = 'permanent' THEN 'dead'
        WHEN attempts >= max_attempts THEN 'dead'
        WHEN :now_ms + :delay_ms >= deadline THEN 'dead'
        ELSE 'pending'
    END,
    reason = CASE
        WHEN :outcome = 'ok' THEN NULL
        WHEN :outcome = 'permanent' THEN 'permanent'
        WHEN attempts >= max_attempts THEN 'exhausted'
        WHEN :now_ms + :delay_ms >= deadline THEN 'deadline'
        ELSE 'retry'
    END,
    available_at = CASE
        WHEN
            :outcome = 'retry'
            AND attempts < max_attempts
            AND :now_ms + :delay_ms < deadline
            THEN :now_ms + :delay_ms
        ELSE :now_ms
    END,
    owner = NULL,
    lease_until = NULL
WHERE
    id = :id
    AND status = 'leased'
    AND qty = :qty
    AND owner = :owner
    AND token = :token
    AND attempts = :attempt
    AND lease_until = :lease_until
    AND lease_until > :now_ms
    AND deadline > :now_ms
RETURNING status;
