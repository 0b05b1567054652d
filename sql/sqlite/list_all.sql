-- list_all: read a page of jobs in the order of their intake.
--
-- Parameters
--   :after_seq  integer  the seq that ended the page before, NULL for the first
--   :max_jobs   integer  size of the page
-- Result     many; seq, id, qty, status, attempts, max_attempts, token, available_at, deadline,
--            owner, lease_until, reason
-- Called by  lease.jobs._list.list_jobs
-- Plan       PRIMARY KEY
--
-- The first page begins below every integer: an outsider may have chosen any seq.
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
WHERE seq > coalesce(:after_seq, -1e19)
ORDER BY seq ASC
LIMIT :max_jobs;
