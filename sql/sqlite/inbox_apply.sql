-- inbox_apply: make the built-in effect, one row an event.
--
-- Parameters
--   :id      text     identifier of the event
--   :qty     integer  quantity, 1-1000
--   :now_ms  integer  receiver's clock, milliseconds
-- Result     none
-- Called by  lease.inbox._accept.accept
-- Plan       -
--
-- The id is unique here as well: a second effect would be refused by the schema itself.
INSERT INTO effects (id, qty, at_ms)
VALUES (:id, :qty, :now_ms);
