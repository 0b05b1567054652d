-- durability_level: read back the level in force; 2 is FULL.
--
-- Parameters
--   none
-- Result     one; synchronous
-- Called by  lease.db.durability.make_durable
-- Plan       -
PRAGMA synchronous;
