-- outbox_delivered: look up the payload that took effect under an id.
--
-- Parameters
--   :outbox_id  text  identifier of the record
-- Result     optional; body_json
-- Called by  lease.outbox._find.delivered
-- Plan       sqlite_autoindex_deliveries_1
SELECT body_json
FROM deliveries
WHERE outbox_id = :outbox_id;
