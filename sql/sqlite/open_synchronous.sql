-- open_synchronous: sync at every commit, so that power loss cannot undo one.
--
-- Parameters
--   none
-- Result     none
-- Called by  lease.jobs._open.open_queue
-- Plan       -
PRAGMA synchronous = FULL;
