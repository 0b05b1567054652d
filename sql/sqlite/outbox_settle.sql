-- outbox_settle: make a pending record processed.
--
-- Parameters
--   :id            text  identifier of the record
--   :processed_at  text  caller's clock, UTC, ISO 8601
-- Result     count
-- Called by  lease.outbox._settle.settle
-- Plan       sqlite_autoindex_outbox_1
UPDATE outbox
SET
    state = 'processed',
    processed_at = :processed_at
WHERE id = :id AND state = 'pending';
