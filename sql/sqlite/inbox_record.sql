-- inbox_record: remember an event, so that its next delivery is known as a repeat.
--
-- Parameters
--   :id      text     identifier of the event
--   :qty     integer  quantity, 1-1000
--   :now_ms  integer  receiver's clock, milliseconds
-- Result     none
-- Called by  lease.inbox._accept.accept
-- Plan       -
INSERT INTO inbox (id, qty, requests, first_ms, last_ms)
VALUES (:id, :qty, 1, :now_ms, :now_ms);
