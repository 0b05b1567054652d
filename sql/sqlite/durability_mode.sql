-- durability_mode: read back the journal mode in force.
--
-- Parameters
--   none
-- Result     one; journal_mode
-- Called by  lease.db.durability.mode_in_force
-- Plan       -
PRAGMA journal_mode;
