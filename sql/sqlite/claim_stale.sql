-- claim_stale: list the leaves in which a claim looks in vain.
--
-- Parameters
--   :now_ms    integer  caller's clock, milliseconds
--   :past_seq  integer  where the search ended: the last job chosen, or the largest integer
-- Result     many; leaf
-- Called by  lease.jobs._walk.tidy
-- Plan       scan (one branch for 16384 jobs)
--
-- Runs after the other statements of a claim, in the same transaction. By then no job is left
-- that must be buried, and none to be leased in a leaf below that of the last job chosen. The
-- last leaf of all is spared: the next job to come in would only lower it again.
SELECT tree_leaves.leaf
FROM tree_branches
CROSS JOIN tree_leaves
WHERE
    (
        tree_branches.bury_at <= :now_ms
        OR (tree_branches.ready_at <= :now_ms AND tree_branches.branch <= :past_seq >> 14)
    )
    AND tree_leaves.leaf BETWEEN tree_branches.branch << 8 AND tree_branches.branch << 8 | 255
    AND (
        tree_leaves.bury_at <= :now_ms
        OR (tree_leaves.ready_at <= :now_ms AND tree_leaves.leaf < :past_seq >> 6)
    )
    AND tree_leaves.leaf < (SELECT max(jobs.seq) >> 6 FROM jobs);
