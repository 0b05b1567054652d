-- schema_has_bookkeeping: tell whether any migration was ever recorded in this file.
--
-- Parameters
--   none
-- Result     optional; name
-- Called by  lease.db.migrations.missing
-- Plan       scan (the catalogue has a handful of rows)
SELECT name
FROM sqlite_schema
WHERE type = 'table' AND name = '_yoyo_migration';
