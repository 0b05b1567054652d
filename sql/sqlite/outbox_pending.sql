-- outbox_pending: list pending records in the order of recording, one page.
--
-- Parameters
--   :after_seq  integer  last seq of the page before; NULL for the first page
--   :max_rows   integer  length of the page; -1 for all
-- Result     many; seq, id, event_type, payload_json
-- Called by  lease.outbox._pending.page
-- Plan       outbox_pending_idx
--
-- The first page begins below every integer: an outsider may have chosen any seq.
SELECT
    seq,
    id,
    event_type,
    payload_json
FROM outbox
WHERE state = 'pending' AND seq > coalesce(:after_seq, -1e19)
ORDER BY seq
LIMIT :max_rows;
