-- outbox_probe: fail unless both tables have the columns that the outbox works on.
--
-- Parameters
--   none
-- Result     none
-- Called by  lease.outbox._open.create_outbox
-- Plan       scan (compiled only; no row is read)
SELECT
    outbox.seq,
    outbox.id,
    outbox.event_type,
    outbox.payload_json,
    outbox.state,
    outbox.dispatch_count,
    outbox.created_at,
    outbox.processed_at,
    outbox.dispatched_at,
    deliveries.body_json,
    deliveries.delivered_at
FROM outbox
INNER JOIN deliveries ON outbox.id = deliveries.outbox_id
ORDER BY outbox.seq ASC
LIMIT 0;
