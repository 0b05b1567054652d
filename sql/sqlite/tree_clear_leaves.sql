-- tree_clear_leaves: forget every leaf of the tree.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tree.tree_rebuild
-- Plan       scan (all of them go)
DELETE FROM tree_leaves;
