-- inbox_event_record: remember an outbox's event, so that its next delivery is known as a repeat.
--
-- Parameters
--   :id            text     identifier of the event
--   :event_type    text     what happened
--   :payload_json  text     canonical JSON
--   :now_ms        integer  receiver's clock, milliseconds
-- Result     none
-- Called by  lease.inbox._accept_event.accept_event
-- Plan       -
INSERT INTO inbox_events (id, event_type, payload_json, requests, first_ms, last_ms)
VALUES (:id, :event_type, :payload_json, 1, :now_ms, :now_ms);
