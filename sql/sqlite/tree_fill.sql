-- tree_fill: make a leaf for every 64 seqs that have an open job, with exact bounds.
--
-- Parameters
--   none
-- Result     count
-- Called by  lease.jobs._tree.tree_rebuild
-- Plan       scan (every job is counted)
--
-- The branches grow by the trigger of the leaves.
INSERT INTO tree_leaves (leaf, ready_at, bury_at)
SELECT
    seq >> 6 AS leaf,
    min(ready_at) AS ready_at,
    min(bury_at) AS bury_at
FROM open_jobs
GROUP BY seq >> 6;
