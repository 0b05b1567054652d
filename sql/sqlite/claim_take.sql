-- claim_take: lease the chosen job under a new token.
--
-- Parameters
--   :seq       integer  the job that was chosen
--   :owner     text     identifier of the worker
--   :now_ms    integer  caller's clock, milliseconds
--   :lease_ms  integer  longest lease, milliseconds
-- Result     one; seq, id, qty, owner, token, attempt, lease_until
-- Called by  lease.jobs._take.take
-- Plan       PRIMARY KEY
--
-- The deadline clips the lease.
UPDATE jobs
SET
    status = 'leased',
    attempts = attempts + 1,
    token = token + 1,
    owner = :owner,
    lease_until = min(:now_ms + :lease_ms, deadline),
    reason = NULL
WHERE seq = :seq
RETURNING seq, id, qty, owner, token, attempts AS attempt, lease_until;
