-- outbox_list: list pending records with their times, in the order of recording, one page.
--
-- Parameters
--   :after_seq  integer  last seq of the page before; 0 for the first page
--   :max_rows   integer  length of the page
-- Result     many; seq, id, event_type, created_at, dispatch_count, dispatched_at
-- Called by  lease.outbox._list.list_pending
-- Plan       outbox_pending_idx
SELECT
    seq,
    id,
    event_type,
    created_at,
    dispatch_count,
    dispatched_at
FROM outbox
WHERE state = 'pending' AND seq > :after_seq
ORDER BY seq
LIMIT :max_rows;
