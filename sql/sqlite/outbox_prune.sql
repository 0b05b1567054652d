-- outbox_prune: remove the records processed longest ago; a pending one is never touched.
--
-- Parameters
--   :before    text     processed before this, UTC, ISO 8601
--   :max_rows  integer  most records to remove
-- Result     count
-- Called by  lease.outbox._prune.prune
-- Plan       outbox_processed_idx
DELETE FROM outbox
WHERE
    seq IN (
        SELECT old.seq
        FROM outbox AS old
        WHERE old.state = 'processed' AND old.processed_at < :before
        ORDER BY old.processed_at, old.seq
        LIMIT :max_rows
    );
