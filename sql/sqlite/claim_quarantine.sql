-- claim_quarantine: bury every job that nobody holds and nobody may try again.
--
-- Parameters
--   :now_ms  integer  caller's clock, milliseconds
-- Result     count
-- Called by  lease.jobs._claim.claim
-- Plan       jobs_open_idx
--
-- A missed deadline is the reason even where the attempts are used up as well. A lease ends at
-- the very instant `lease_until`; until then the job is its holder's.
UPDATE jobs
SET
    status = 'dead',
    owner = NULL,
    lease_until = NULL,
    reason = CASE WHEN deadline <= :now_ms THEN 'deadline' ELSE 'exhausted' END
WHERE
    status IN ('pending', 'leased')
    AND (status = 'pending' OR lease_until <= :now_ms)
    AND (deadline <= :now_ms OR attempts >= max_attempts);
