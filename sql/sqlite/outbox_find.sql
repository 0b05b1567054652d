-- outbox_find: look up what is recorded under an id, and whether it has taken effect.
--
-- Parameters
--   :id  text  identifier of the record
-- Result     optional; event_type, payload_json, state
-- Called by  lease.outbox._find.find
-- Plan       sqlite_autoindex_outbox_1
SELECT
    event_type,
    payload_json,
    state
FROM outbox
WHERE id = :id;
