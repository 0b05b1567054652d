-- enqueue_insert: record a new job, claimable from now until its deadline.
--
-- Parameters
--   :id            text     identifier of the job
--   :qty           integer  quantity, 1-1000
--   :max_attempts  integer  attempt budget
--   :now_ms        integer  caller's clock, milliseconds
--   :ttl_ms        integer  time to live, milliseconds
-- Result     none
-- Called by  lease.jobs._enqueue.enqueue
-- Plan       -
INSERT INTO jobs (
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
)
VALUES (
    :id,
    :qty,
    'pending',
    0,
    :max_attempts,
    0,
    :now_ms,
    :now_ms + :ttl_ms,
    NULL,
    NULL,
    NULL
);
