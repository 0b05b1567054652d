-- list_status: read a page of the jobs in one state, in the order of their intake.
--
-- Parameters
--   :status     text     pending, leased, done or dead
--   :after_seq  integer  the seq that ended the page before, NULL for the first
--   :max_jobs   integer  size of the page
-- Result     many; seq, id, qty, status, attempts, max_attempts, token, available_at, deadline,
--            owner, lease_until, reason
-- Called by  lease.jobs._list.list_jobs
-- Plan       PRIMARY KEY
--
-- Reads on from the page before until the page is full; an index on the state would be paid for
-- by every claim.
SELECT
    seq,
    id,
    qty,
    status,
    attempts,
    max_attempts,
    token,
    available_at,
    deadline,
    owner,
    lease_until,
    reason
FROM jobs
WHERE seq > coalesce(:after_seq, -1e19) AND status = :status
ORDER BY seq ASC
LIMIT :max_jobs;
