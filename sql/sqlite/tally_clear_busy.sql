-- tally_clear_busy: make every block quiet.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tally.tally_rebuild
-- Plan       scan (all of them go)
DELETE FROM tally_busy;
