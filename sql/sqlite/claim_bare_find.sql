-- claim_bare_find: choose the oldest claimable jobs.
--
-- Parameters
--   :now_ms    integer  caller's clock, milliseconds
--   :max_jobs  integer  how many to choose at most
-- Result     many; seq
-- Called by  lease.jobs._walk._search_bare
-- Plan       scan (a file without the tree)
--
-- As claim_find, in a file that has nothing but the contract's two tables.
SELECT seq
FROM jobs
WHERE
    (status = 'pending' AND available_at <= :now_ms)
    OR (status = 'leased' AND lease_until <= :now_ms)
ORDER BY seq ASC
LIMIT :max_jobs;
