-- The ways in which records are looked for; processed ones only ever grow in number.
--
-- outbox_pending_idx: what is still to be done, oldest first; serves outbox_pending and the
-- counts. outbox_due_idx: what was never pushed, or not for long; serves outbox_new and
-- outbox_overdue. Neither holds a processed record. outbox_processed_idx: what may be removed,
-- longest processed first; serves outbox_prune, which would else pass over the recent ones.
-- Cost on a large table: one pass over outbox for each.

CREATE INDEX IF NOT EXISTS outbox_pending_idx ON outbox (seq)
WHERE state = 'pending';

CREATE INDEX IF NOT EXISTS outbox_due_idx ON outbox (dispatched_at)
WHERE state = 'pending';

CREATE INDEX IF NOT EXISTS outbox_processed_idx ON outbox (processed_at)
WHERE state = 'processed';
