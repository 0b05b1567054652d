-- tally_clear_totals: forget every total.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tally.tally_rebuild
-- Plan       -
--
-- Runs after tally_clear_busy, whose trigger adds to the totals.
DELETE FROM tally_totals;
