-- list_reason: read a page of the jobs that are in a state for one reason, in order of intake.
--
-- Parameters
--   :status     text     pending, leased, done or dead
--   :reason     text     deadline, exhausted or permanent
--   :after_seq  integer  the seq that ended the page before, NULL for the first
--   :max_jobs   integer  size of the page
-- Result     many; seq, id, qty, status, attempts, max_attempts, token, available_at, deadline,
--            owner, lease_until, reason
-- Called by  lease.jobs._list.list_jobs
-- Plan       PRIMARY KEY
--
-- Reads on from the page before until the page is full, so that all pages together read each job
-- once.
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
WHERE seq > coalesce(:after_seq, -1e19) AND status = :status AND reason = :reason
ORDER BY seq ASC
LIMIT :max_jobs;
