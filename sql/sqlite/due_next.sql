-- due_next: tell the earliest instant at which a claim would change something.
--
-- Parameters
--   none
-- Result     one; due_ms
-- Called by  lease.jobs._due.next_due
-- Plan       scan (one branch for 16384 jobs)
--
-- A pending job is due when it becomes available or its deadline passes, at once if its attempts
-- are used up; a leased one when its lease ends, which no deadline precedes. NULL means that no
-- job is open. An idle worker asks this in place of a claim, which would take the write lock.
--
-- Two leaves are read first: the newest, whose bounds nobody raises, and of the others the one
-- with the lowest bounds. The earliest job of these is `near`; only a leaf with lower bounds can
-- hold an earlier one, and mostly there is none.
WITH
newest (leaf) AS (
    SELECT max(jobs.seq) >> 6
    FROM jobs
),

branches (branch) AS (
    SELECT newest.leaf >> 8
    FROM newest
    UNION ALL
    SELECT lowest.branch
    FROM (
        SELECT tree_branches.branch
        FROM tree_branches
        WHERE tree_branches.branch <> (SELECT newest.leaf >> 8 FROM newest)
        ORDER BY min(tree_branches.ready_at, tree_branches.bury_at) ASC
        LIMIT 1
    ) AS lowest
),

leaves (leaf) AS (
    SELECT newest.leaf
    FROM newest
    UNION ALL
    SELECT lowest.leaf
    FROM (
        SELECT tree_leaves.leaf
        FROM branches
        CROSS JOIN tree_leaves
        WHERE
            tree_leaves.leaf BETWEEN branches.branch << 8 AND branches.branch << 8 | 255
            AND tree_leaves.leaf <> (SELECT newest.leaf FROM newest)
        ORDER BY min(tree_leaves.ready_at, tree_leaves.bury_at) ASC
        LIMIT 1
    ) AS lowest
),

near (due_at) AS (
    SELECT coalesce(min(min(open_jobs.ready_at, open_jobs.bury_at)), 9223372036854775807)
    FROM leaves
    CROSS JOIN open_jobs
    WHERE open_jobs.seq BETWEEN leaves.leaf << 6 AND leaves.leaf << 6 | 63
)

SELECT nullif(min(found.due_at), 9223372036854775807) AS due_ms
FROM (
    SELECT near.due_at
    FROM near
    UNION ALL
    SELECT min(open_jobs.ready_at, open_jobs.bury_at) AS due_at
    FROM near
    CROSS JOIN tree_branches
    CROSS JOIN tree_leaves
    CROSS JOIN open_jobs
    WHERE
        min(tree_branches.ready_at, tree_branches.bury_at) < near.due_at
        AND tree_leaves.leaf BETWEEN tree_branches.branch << 8 AND tree_branches.branch << 8 | 255
        AND min(tree_leaves.ready_at, tree_leaves.bury_at) < near.due_at
        AND open_jobs.seq BETWEEN tree_leaves.leaf << 6 AND tree_leaves.leaf << 6 | 63
) AS found;
