-- schema_keepers: list the triggers and views of a file, with their text.
--
-- Parameters
--   none
-- Result     many; name, type, sql
-- Called by  lease.db.keepers._keepers
-- Plan       scan (the catalogue has a handful of rows)
SELECT
    name,
    type,
    sql
FROM sqlite_schema
WHERE type IN ('trigger', 'view');
