-- renew_find: tell how long the holder of the current ticket may keep its job.
--
-- Parameters
--   :id           text     identifier of the job
--   :qty          integer  quantity of the ticket
--   :owner        text     identifier of the worker
--   :token        integer  fencing token of the ticket
--   :attempt      integer  attempt of the ticket
--   :lease_until  integer  lease end of the ticket, milliseconds
--   :now_ms       integer  caller's clock, milliseconds
--   :lease_ms     integer  longest lease from now, milliseconds
-- Result     optional; new_lease_until
-- Called by  lease.jobs._renew.renew
-- Plan       sqlite_autoindex_jobs_1
--
-- No row means a stale ticket, by the same guard as finish_settle. A lease is never shortened:
-- what was granted stays granted.
SELECT max(lease_until, min(:now_ms + :lease_ms, deadline)) AS new_lease_until
FROM jobs
WHERE
    id = :id
    AND status = 'leased'
    AND qty = :qty
    AND owner = :owner
    AND token = :token
    AND attempts = :attempt
    AND lease_until = :lease_until
    AND lease_until > :now_ms
    AND deadline > :now_ms;
