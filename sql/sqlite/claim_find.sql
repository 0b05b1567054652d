-- claim_find: choose the oldest claimable jobs.
--
-- Parameters
--   :now_ms    integer  caller's clock, milliseconds
--   :max_jobs  integer  how many to choose at most
-- Result     many; seq
-- Called by  lease.jobs._walk.search
-- Plan       scan (one branch for 16384 jobs)
--
-- Runs where claim_look does not say it all: for several jobs, and after claim_quarantine, which
-- leaves only jobs with time and attempts to spare. The tree names the leaves in which there may
-- be such a job, in order.
SELECT open_jobs.seq
FROM tree_branches
CROSS JOIN tree_leaves
CROSS JOIN open_jobs
WHERE
    tree_branches.ready_at <= :now_ms
    AND tree_leaves.leaf BETWEEN tree_branches.branch << 8 AND tree_branches.branch << 8 | 255
    AND tree_leaves.ready_at <= :now_ms
    AND open_jobs.seq BETWEEN tree_leaves.leaf << 6 AND tree_leaves.leaf << 6 | 63
    AND open_jobs.ready_at <= :now_ms
ORDER BY tree_branches.branch ASC, tree_leaves.leaf ASC, open_jobs.seq ASC
LIMIT :max_jobs;
