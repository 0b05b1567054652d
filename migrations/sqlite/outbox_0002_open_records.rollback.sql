-- Removes the indexes; every look for pending records then reads the whole outbox.

DROP INDEX outbox_processed_idx;

DROP INDEX outbox_due_idx;

DROP INDEX outbox_pending_idx;
