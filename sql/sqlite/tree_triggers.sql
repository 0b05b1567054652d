-- tree_triggers: list the triggers that keep the tree.
--
-- Parameters
--   none
-- Result     many; name
-- Called by  lease.jobs._tree.tree_check
-- Plan       scan (the catalogue has a handful of rows)
SELECT name
FROM sqlite_schema
WHERE type = 'trigger' AND name LIKE 'tree\_%' ESCAPE '\';
