-- inbox_probe: fail unless all three tables have the columns that the inbox works on.
--
-- Parameters
--   none
-- Result     none
-- Called by  lease.inbox._open.create_inbox
-- Plan       scan (compiled only; no row is read)
SELECT
    inbox.id,
    inbox.qty,
    inbox.requests,
    inbox.first_ms,
    inbox.last_ms,
    effects.seq,
    effects.qty AS effect_qty,
    effects.at_ms,
    inbox_events.seq AS event_seq,
    inbox_events.event_type,
    inbox_events.payload_json,
    inbox_events.requests AS event_requests,
    inbox_events.first_ms AS event_first_ms,
    inbox_events.last_ms AS event_last_ms
FROM inbox
INNER JOIN effects ON inbox.id = effects.id
INNER JOIN inbox_events ON inbox.id = inbox_events.id
ORDER BY inbox.id ASC
LIMIT 0;
