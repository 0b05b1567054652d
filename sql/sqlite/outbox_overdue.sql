-- outbox_overdue: list records pending although they were pushed long ago, longest first.
--
-- Parameters
--   :before    text     last push at or before this, UTC, ISO 8601
--   :max_rows  integer  most records to list
-- Result     many; id, event_type, payload_json
-- Called by  lease.outbox._relay.overdue
-- Plan       outbox_due_idx
--
-- Times compare as text: every one that lease writes has the same length and zone.
SELECT
    id,
    event_type,
    payload_json
FROM outbox
WHERE state = 'pending' AND dispatched_at <= :before
ORDER BY dispatched_at, seq
LIMIT :max_rows;
