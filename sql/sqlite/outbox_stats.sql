-- outbox_stats: count the records in each state, and tell how long the oldest has waited.
--
-- Parameters
--   none
-- Result     one; pending, dispatched, oldest_pending_at, processed
-- Called by  lease.outbox._stats.stats
-- Plan       scan (a count reads what it counts)
SELECT
    (
        SELECT count(outbox.seq)
        FROM outbox
        WHERE outbox.state = 'pending'
    ) AS pending,
    (
        SELECT count(outbox.seq)
        FROM outbox
        WHERE outbox.state = 'pending' AND outbox.dispatched_at IS NOT NULL
    ) AS dispatched,
    (
        SELECT outbox.created_at
        FROM outbox
        WHERE outbox.state = 'pending'
        ORDER BY outbox.seq
        LIMIT 1
    ) AS oldest_pending_at,
    (
        SELECT count(outbox.seq)
        FROM outbox
        WHERE outbox.state = 'processed'
    ) AS processed;
