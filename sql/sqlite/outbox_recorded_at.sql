-- outbox_recorded_at: look up when a record that is still pending was recorded.
--
-- Parameters
--   :id  text  identifier of the record
-- Result     optional; created_at
-- Called by  lease.outbox._find.recorded_at
-- Plan       sqlite_autoindex_outbox_1
SELECT created_at
FROM outbox
WHERE id = :id AND state = 'pending';
