-- outbox_dispatched: count one push that a server has acknowledged.
--
-- Parameters
--   :id             text  identifier of the record
--   :dispatched_at  text  caller's clock, UTC, ISO 8601
-- Result     count
-- Called by  lease.outbox._dispatch.count_pushes
-- Plan       sqlite_autoindex_outbox_1
--
-- A record may be processed before its push is counted; the push is counted all the same.
UPDATE outbox
SET
    dispatch_count = dispatch_count + 1,
    dispatched_at = :dispatched_at
WHERE id = :id;
