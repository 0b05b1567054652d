-- claim_look: tell whether there is a job to bury, and which is the oldest claimable one.
--
-- Parameters
--   :now_ms  integer  caller's clock, milliseconds
-- Result     one; is_overdue, seq
-- Called by  lease.jobs._walk.search
-- Plan       scan (one branch for 16384 jobs)
--
-- Asked first, because an UPDATE that changes nothing costs many times as much. Where there is a
-- job to bury, it may be the one of this seq. No seq: nothing is claimable, whatever is buried.
SELECT
    (
        SELECT open_jobs.seq
        FROM tree_branches
        CROSS JOIN tree_leaves
        CROSS JOIN open_jobs
        WHERE
            tree_branches.bury_at <= :now_ms
            AND tree_leaves.leaf BETWEEN tree_branches.branch << 8
            AND tree_branches.branch << 8 | 255
            AND tree_leaves.bury_at <= :now_ms
            AND open_jobs.seq BETWEEN tree_leaves.leaf << 6 AND tree_leaves.leaf << 6 | 63
            AND open_jobs.bury_at <= :now_ms
        ORDER BY tree_branches.branch ASC, tree_leaves.leaf ASC, open_jobs.seq ASC
        LIMIT 1
    ) IS NOT NULL AS is_overdue,
    (
        SELECT open_jobs.seq
        FROM tree_branches
        CROSS JOIN tree_leaves
        CROSS JOIN open_jobs
        WHERE
            tree_branches.ready_at <= :now_ms
            AND tree_leaves.leaf BETWEEN tree_branches.branch << 8
            AND tree_branches.branch << 8 | 255
            AND tree_leaves.ready_at <= :now_ms
            AND open_jobs.seq BETWEEN tree_leaves.leaf << 6 AND tree_leaves.leaf << 6 | 63
            AND open_jobs.ready_at <= :now_ms
        ORDER BY tree_branches.branch ASC, tree_leaves.leaf ASC, open_jobs.seq ASC
        LIMIT 1
    ) AS seq;
