-- durability_delete: keep a rollback journal, deleted by each commit.
--
-- Parameters
--   none
-- Result     one; journal_mode
-- Called by  lease.db.durability.make_durable
-- Plan       -
--
-- SQLite answers with the mode now in force, which need not be the one asked for.
PRAGMA journal_mode = DELETE;
