-- tree_clear_branches: forget every branch of the tree.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tree.tree_rebuild
-- Plan       -
--
-- Those of the leaves that were cleared have gone with them; a broken tree may have others.
DELETE FROM tree_branches;
