-- schema_applied: list the applied migrations of one set.
--
-- Parameters
--   :migration_set  text  prefix of the set's file names
-- Result     many; migration_id
-- Called by  lease.db.migrations.missing
-- Plan       scan (one row a migration)
--
-- The bookkeeping is shared with the application's own migrations and with other sets.
SELECT migration_id
FROM _yoyo_migration
WHERE migration_id LIKE :migration_set || '\_%' ESCAPE '\';
