-- inbox_probe: fail unless both tables have the columns that the inbox works on.
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
    effects.at_ms
FROM inbox
INNER JOIN effects ON inbox.id = effects.id
ORDER BY inbox.id ASC
LIMIT 0;
