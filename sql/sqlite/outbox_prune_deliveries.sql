-- outbox_prune_deliveries: remove the deliveries of the records that outbox_prune will remove.
--
-- Parameters
--   :before    text     processed before this, UTC, ISO 8601
--   :max_rows  integer  most records to remove
-- Result     count
-- Called by  lease.outbox._prune.prune
-- Plan       outbox_processed_idx, sqlite_autoindex_deliveries_1
--
-- Runs first, since a delivery refers to its record, and picks the same records.
DELETE FROM deliveries
WHERE
    outbox_id IN (
        SELECT outbox.id
        FROM outbox
        WHERE outbox.state = 'processed' AND outbox.processed_at < :before
        ORDER BY outbox.processed_at, outbox.seq
        LIMIT :max_rows
    );
