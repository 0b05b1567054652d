-- outbox_record: record a new event, pending until it has taken effect.
--
-- Parameters
--   :id            text  identifier of the record
--   :event_type    text  what happened
--   :payload_json  text  canonical JSON
--   :created_at    text  caller's clock, UTC, ISO 8601
-- Result     none
-- Called by  lease.outbox._record.record
-- Plan       -
INSERT INTO outbox (id, event_type, payload_json, state, created_at)
VALUES (:id, :event_type, :payload_json, 'pending', :created_at);
