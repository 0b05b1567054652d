-- open_synchronous_level: read back the level in force; 2 is FULL.
--
-- Parameters
--   none
-- Result     one; synchronous
-- Called by  lease.jobs._open.open_queue
-- Plan       -
PRAGMA synchronous;
