-- outbox_pending: list pending records in the order of recording, one page.
--
-- Parameters
--   :after_seq  integer  last seq of the page before; 0 for the first page
--   :max_rows   integer  length of the page; -1 for all
-- Result     many; seq, id, event_type, payload_json
-- Called by  lease.outbox._pending.page
-- Plan       outbox_pending_idx
SELECT
    seq,
    id,
    event_type,
    payload_json
FROM outbox
WHERE state = 'pending' AND seq > :after_seq
ORDER BY seq
LIMIT :max_rows;
