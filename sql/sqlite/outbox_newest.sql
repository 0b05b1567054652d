-- outbox_newest: tell the place of the newest record, beyond which a walk does not go.
--
-- Parameters
--   none
-- Result     optional; seq
-- Called by  lease.outbox._dead_ids.dead_ids
-- Plan       PRIMARY KEY
SELECT newest.seq
FROM outbox AS newest
WHERE newest.seq = (SELECT max(outbox.seq) FROM outbox);
