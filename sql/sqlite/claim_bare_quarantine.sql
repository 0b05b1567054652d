-- claim_bare_quarantine: bury every job that nobody holds and nobody may try again.
--
-- Parameters
--   :now_ms  integer  caller's clock, milliseconds
-- Result     count
-- Called by  lease.jobs._walk._search_bare
-- Plan       scan (a file without the tree)
--
-- As claim_quarantine, in a file that has nothing but the contract's two tables.
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
