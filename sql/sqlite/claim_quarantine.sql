-- claim_quarantine: bury every job that nobody holds and nobody may try again.
--
-- Parameters
--   :now_ms  integer  caller's clock, milliseconds
-- Result     count
-- Called by  lease.jobs._walk.search
-- Plan       scan (one branch for 16384 jobs)
--
-- The tree names the leaves in which there may be such a job; the rule is the last three lines.
-- A missed deadline is the reason even where the attempts are used up as well. A lease ends at
-- the very instant `lease_until`; until then the job is its holder's.
UPDATE jobs
SET
    status = 'dead',
    owner = NULL,
    lease_until = NULL,
    reason = CASE WHEN deadline <= :now_ms THEN 'deadline' ELSE 'exhausted' END
WHERE
    seq IN (
        SELECT jobs.seq
        FROM tree_branches
        CROSS JOIN tree_leaves
        CROSS JOIN jobs
        WHERE
            tree_branches.bury_at <= :now_ms
            AND tree_leaves.leaf BETWEEN tree_branches.branch << 8
            AND tree_branches.branch << 8 | 255
            AND tree_leaves.bury_at <= :now_ms
            AND jobs.seq BETWEEN tree_leaves.leaf << 6 AND tree_leaves.leaf << 6 | 63
            AND jobs.status IN ('pending', 'leased')
            AND (jobs.status = 'pending' OR jobs.lease_until <= :now_ms)
            AND (jobs.deadline <= :now_ms OR jobs.attempts >= jobs.max_attempts)
    );
