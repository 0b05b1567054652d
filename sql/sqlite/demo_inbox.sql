-- demo_inbox: read what a receiver has accepted, and how often it was asked to.
--
-- Parameters
--   none
-- Result     many; id, qty, requests
-- Called by  lease.demo._evidence.read_inbox
-- Plan       scan (a demo's inbox has a few dozen rows)
SELECT
    id,
    qty,
    requests
FROM inbox
ORDER BY id ASC;
