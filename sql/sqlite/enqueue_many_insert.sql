-- enqueue_many_insert: record new jobs in the order given, as enqueue_insert does one.
--
-- Parameters
--   :events        text     JSON array of [id, quantity]
--   :max_attempts  integer  attempt budget of each
--   :now_ms        integer  caller's clock, milliseconds
--   :ttl_ms        integer  time to live of each, milliseconds
-- Result     none
-- Called by  lease.jobs._enqueue_many.enqueue_many
-- Plan       scan (of the array)
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
SELECT
    json_extract(event.value, '$[0]') AS id,
    json_extract(event.value, '$[1]') AS qty,
    'pending' AS status,
    0 AS attempts,
    :max_attempts AS max_attempts,
    0 AS token,
    :now_ms AS available_at,
    :now_ms + :ttl_ms AS deadline,
    NULL AS owner,
    NULL AS lease_until,
    NULL AS reason
FROM json_each(:events) AS event
ORDER BY event.key ASC;
