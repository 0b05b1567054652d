-- durability_wal: keep a write-ahead log; readers and the writer do not wait for each other.
--
-- Parameters
--   none
-- Result     one; journal_mode
-- Called by  lease.db.durability.make_durable
-- Plan       -
--
-- SQLite answers with the mode now in force, which need not be the one asked for.
PRAGMA journal_mode = WAL;
