-- inbox_repeat: count another delivery of an event whose effect is made.
--
-- Parameters
--   :id      text     identifier of the event
--   :now_ms  integer  receiver's clock, milliseconds
-- Result     count
-- Called by  lease.inbox._accept.accept
-- Plan       PRIMARY KEY
--
-- A wall clock may have been set back since.
UPDATE inbox
SET
    requests = requests + 1,
    last_ms = max(last_ms, :now_ms)
WHERE id = :id;
