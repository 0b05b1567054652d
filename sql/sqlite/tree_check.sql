-- tree_check: list where the tree breaks its invariant.
--
-- Parameters
--   none
-- Result     many; part, number, ready_at, bury_at, lowest_ready_at, lowest_bury_at
-- Called by  lease.jobs._tree.tree_check
-- Plan       scan (everything is checked)
--
-- A part is a leaf or a branch; its bounds are NULL where it is missing, and the lowest ones are
-- NULL where nothing is below it. A leaf's bounds may be lower than the instants of its open
-- jobs; those of a branch are the lowest of its leaves.
SELECT
    'leaf' AS part,
    jobs_below.leaf AS number,
    tree_leaves.ready_at,
    tree_leaves.bury_at,
    jobs_below.ready_at AS lowest_ready_at,
    jobs_below.bury_at AS lowest_bury_at
FROM (
    SELECT
        open_jobs.seq >> 6 AS leaf,
        min(open_jobs.ready_at) AS ready_at,
        min(open_jobs.bury_at) AS bury_at
    FROM open_jobs
    GROUP BY open_jobs.seq >> 6
) AS jobs_below
LEFT JOIN tree_leaves ON jobs_below.leaf = tree_leaves.leaf
WHERE
    tree_leaves.leaf IS NULL
    OR tree_leaves.ready_at > jobs_below.ready_at
    OR tree_leaves.bury_at > jobs_below.bury_at
UNION ALL
SELECT
    'branch' AS part,
    leaves_below.branch AS number,
    tree_branches.ready_at,
    tree_branches.bury_at,
    leaves_below.ready_at AS lowest_ready_at,
    leaves_below.bury_at AS lowest_bury_at
FROM (
    SELECT
        tree_leaves.leaf >> 8 AS branch,
        min(tree_leaves.ready_at) AS ready_at,
        min(tree_leaves.bury_at) AS bury_at
    FROM tree_leaves
    GROUP BY tree_leaves.leaf >> 8
) AS leaves_below
LEFT JOIN tree_branches ON leaves_below.branch = tree_branches.branch
WHERE
    tree_branches.branch IS NULL
    OR tree_branches.ready_at <> leaves_below.ready_at
    OR tree_branches.bury_at <> leaves_below.bury_at
UNION ALL
SELECT
    'branch' AS part,
    tree_branches.branch AS number,
    tree_branches.ready_at,
    tree_branches.bury_at,
    NULL AS lowest_ready_at,
    NULL AS lowest_bury_at
FROM tree_branches
WHERE
    NOT EXISTS (
        SELECT 1
        FROM tree_leaves
        WHERE
            tree_leaves.leaf BETWEEN tree_branches.branch << 8 AND tree_branches.branch << 8 | 255
    )
ORDER BY part ASC, number ASC;
