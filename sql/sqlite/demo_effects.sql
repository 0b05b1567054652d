-- demo_effects: read every effect that a receiver has made, in order.
--
-- Parameters
--   none
-- Result     many; id, qty
-- Called by  lease.demo._evidence.read_inbox
-- Plan       scan (a demo's inbox has a few dozen rows)
SELECT
    id,
    qty
FROM effects
ORDER BY seq ASC;
