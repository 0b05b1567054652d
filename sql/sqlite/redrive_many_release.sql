-- redrive_many_release: put dead jobs back in line, as redrive_release does one.
--
-- Parameters
--   :seqs    text     JSON array of the dead jobs that redrive_many_find has found
--   :now_ms  integer  caller's clock, milliseconds
--   :ttl_ms  integer  time to live of each, milliseconds
-- Result     none
-- Called by  lease.jobs._redrive_many.redrive_many
-- Plan       PRIMARY KEY
--
-- Runs in the transaction of redrive_many_find, so that what was dead there still is. The tokens
-- are kept, so that workers from before the quarantine stay refused.
UPDATE jobs
SET
    status = 'pending',
    attempts = 0,
    available_at = :now_ms,
    deadline = :now_ms + :ttl_ms,
    owner = NULL,
    lease_until = NULL,
    reason = NULL
WHERE seq IN (SELECT chosen.value FROM json_each(:seqs) AS chosen);
