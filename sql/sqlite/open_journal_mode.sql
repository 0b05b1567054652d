-- open_journal_mode: keep a rollback journal, deleted by each commit.
--
-- Parameters
--   none
-- Result     one; journal_mode
-- Called by  lease.jobs._open.open_queue
-- Plan       -
--
-- SQLite answers with the mode now in force, which need not be the one asked for.
PRAGMA journal_mode = DELETE;
