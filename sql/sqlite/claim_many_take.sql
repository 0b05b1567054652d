-- claim_many_take: lease the chosen jobs, each under a new token, as claim_take does one.
--
-- Parameters
--   :seqs      text     JSON array of the jobs that claim_find has chosen
--   :owner     text     identifier of the worker
--   :now_ms    integer  caller's clock, milliseconds
--   :lease_ms  integer  longest lease, milliseconds
-- Result     many; seq, id, qty, owner, token, attempt, lease_until
-- Called by  lease.jobs._take.take
-- Plan       PRIMARY KEY
--
-- The rows come in no order.
UPDATE jobs
SET
    status = 'leased',
    attempts = attempts + 1,
    token = token + 1,
    owner = :owner,
    lease_until = min(:now_ms + :lease_ms, deadline),
    reason = NULL
WHERE seq IN (SELECT chosen.value FROM json_each(:seqs) AS chosen)
RETURNING seq, id, qty, owner, token, attempts AS attempt, lease_until;
