-- outbox_new: list pending records that no server has acknowledged yet, oldest first.
--
-- Parameters
--   :max_rows  integer  most records to list
-- Result     many; id, event_type, payload_json
-- Called by  lease.outbox._relay.new
-- Plan       outbox_due_idx
SELECT
    id,
    event_type,
    payload_json
FROM outbox
WHERE state = 'pending' AND dispatched_at IS NULL
ORDER BY seq
LIMIT :max_rows;
