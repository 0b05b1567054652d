-- inbox_event_repeat: count another delivery of an event whose effect is made.
--
-- Parameters
--   :id      text     identifier of the event
--   :now_ms  integer  receiver's clock, milliseconds
-- Result     count
-- Called by  lease.inbox._accept_event.accept_event
-- Plan       sqlite_autoindex_inbox_events_1
--
-- A wall clock may have been set back since.
UPDATE inbox_events
SET
    requests = requests + 1,
    last_ms = max(last_ms, :now_ms)
WHERE id = :id;
