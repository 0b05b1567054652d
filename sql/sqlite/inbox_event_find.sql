-- inbox_event_find: look up the content already accepted under an id.
--
-- Parameters
--   :id  text  identifier of the event
-- Result     optional; event_type, payload_json
-- Called by  lease.inbox._accept_event.accept_event
-- Plan       sqlite_autoindex_inbox_events_1
SELECT
    event_type,
    payload_json
FROM inbox_events
WHERE id = :id;
