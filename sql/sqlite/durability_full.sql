-- durability_full: sync at every commit, so that power loss cannot undo one.
--
-- Parameters
--   none
-- Result     none
-- Called by  lease.db.durability.make_durable
-- Plan       -
PRAGMA synchronous = FULL;
