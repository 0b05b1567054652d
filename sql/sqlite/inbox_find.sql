-- inbox_find: look up the quantity already accepted under an id.
--
-- Parameters
--   :id  text  identifier of the event
-- Result     optional; qty
-- Called by  lease.inbox._accept.accept
-- Plan       PRIMARY KEY
SELECT qty
FROM inbox
WHERE id = :id;
