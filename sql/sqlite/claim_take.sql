-- claim_take: lease the oldest claimable job under a new token.
--
-- Parameters
--   :owner     text     identifier of the worker
--   :now_ms    integer  caller's clock, milliseconds
--   :lease_ms  integer  longest lease, milliseconds
-- Result     optional; id, qty, owner, token, attempt, lease_until
-- Called by  lease.jobs._claim.claim
-- Plan       jobs_open_idx
--
-- Runs after claim_quarantine in the same transaction, which leaves only jobs with time and
-- attempts to spare. The deadline clips the lease.
UPDATE jobs
SET
    status = 'leased',
    attempts = attempts + 1,
    token = token + 1,
    owner = :owner,
    lease_until = min(:now_ms + :lease_ms, deadline),
    reason = NULL
WHERE
    seq = (
        SELECT ready.seq
        FROM jobs AS ready
        WHERE
            ready.status IN ('pending', 'leased')
            AND CASE ready.status
                WHEN 'pending' THEN ready.available_at
                ELSE ready.lease_until
            END <= :now_ms
        ORDER BY ready.seq
        LIMIT 1
    )
RETURNING id, qty, owner, token, attempts AS attempt, lease_until;
