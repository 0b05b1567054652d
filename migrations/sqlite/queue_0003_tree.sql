-- The tree: where among the open jobs to look for one that is due; serves every claim.
--
-- An open job is pending or leased. `ready_at` is the instant from which it may be claimed and
-- `bury_at` the one from which it must be buried; the view open_jobs says how they follow from
-- its row. A leaf stands for 64 consecutive seqs and a branch for 256 consecutive leaves; each
-- holds a bound for either instant:
--
--     tree_branches   [ branch 0: seq 0 to 16383               ] [ branch 1: 16384 to 32767 ] ...
--     tree_leaves     [ leaf 0: 0 to 63 ] [ leaf 1: 64 to 127 ] ...
--     jobs            1  2  3  ...
--
-- Invariant, after every statement:
--   1. each open job has a leaf, neither bound of which is above the job's own instant;
--   2. each leaf has a branch, each branch a leaf, and a branch's bounds are the lowest of those
--      of its leaves.
-- So whatever is due lies below a branch and a leaf that are due. A leaf's bound may be too low,
-- which costs a look at 64 rows; it is never too high, which would hide a job for ever.
--
-- Triggers keep it so under anybody's SQL. They hold no clock. Lowering a bound is done at once.
-- Raising one is put off until a leaf's last lease ends, its last open job goes or a claim has
-- looked in vain; and never done to the leaf of the newest job, which the next job to come would
-- lower again. So nearly all changes of a job write no page beyond the job's own.
--
-- `seq >> 6` is a job's leaf, `leaf >> 8` a leaf's branch; `x << 6 | 63` is the last seq of a
-- leaf, `seq & -64` the first. The sizes make the branches, the leaves of one and the jobs of one
-- about equally many to read for a million open jobs. 9223372036854775807, the largest integer,
-- stands for never.
--
-- The index of the migration before is dropped: nothing reads it any more, and each change of a
-- job's state would still write it.
--
-- Cost on a large table: one pass over jobs, about two seconds for a million open ones.

CREATE TABLE tree_leaves (
    leaf INTEGER PRIMARY KEY,
    ready_at INTEGER NOT NULL,
    bury_at INTEGER NOT NULL
);

CREATE TABLE tree_branches (
    branch INTEGER PRIMARY KEY,
    ready_at INTEGER NOT NULL,
    bury_at INTEGER NOT NULL
);

CREATE VIEW open_jobs AS
SELECT
    seq,
    status,
    CASE status
        WHEN 'pending' THEN available_at
        ELSE coalesce(lease_until, 9223372036854775807)
    END AS ready_at,
    CASE
        WHEN status = 'pending' AND attempts >= max_attempts THEN 0
        WHEN status = 'pending' THEN deadline
        WHEN lease_until IS NULL THEN 9223372036854775807
        WHEN attempts >= max_attempts THEN lease_until
        ELSE max(lease_until, deadline)
    END AS bury_at
FROM jobs
WHERE status IN ('pending', 'leased');

CREATE VIEW tree_recount AS
SELECT leaf
FROM tree_leaves;

CREATE TRIGGER tree_recount_leaf
INSTEAD OF INSERT ON tree_recount
BEGIN
    UPDATE tree_leaves
    SET
        ready_at = exact.ready_at,
        bury_at = exact.bury_at
    FROM (
        SELECT
            coalesce(min(open_jobs.ready_at), 9223372036854775807) AS ready_at,
            coalesce(min(open_jobs.bury_at), 9223372036854775807) AS bury_at
        FROM open_jobs
        WHERE open_jobs.seq BETWEEN new.leaf << 6 AND new.leaf << 6 | 63
    ) AS exact
    WHERE
        tree_leaves.leaf = new.leaf
        AND (tree_leaves.ready_at <> exact.ready_at OR tree_leaves.bury_at <> exact.bury_at);
    DELETE FROM tree_leaves
    WHERE
        tree_leaves.leaf = new.leaf
        AND NOT EXISTS (
            SELECT 1
            FROM open_jobs
            WHERE open_jobs.seq BETWEEN new.leaf << 6 AND new.leaf << 6 | 63
        );
END;

CREATE TRIGGER tree_insert_leaf
AFTER INSERT ON tree_leaves
WHEN
    NOT EXISTS (
        SELECT 1
        FROM tree_branches
        WHERE
            tree_branches.branch = new.leaf >> 8
            AND tree_branches.ready_at <= new.ready_at
            AND tree_branches.bury_at <= new.bury_at
    )
BEGIN
    INSERT INTO tree_branches (branch, ready_at, bury_at)
    VALUES (new.leaf >> 8, new.ready_at, new.bury_at)
    ON CONFLICT (branch) DO UPDATE
    SET
        ready_at = min(tree_branches.ready_at, excluded.ready_at),
        bury_at = min(tree_branches.bury_at, excluded.bury_at);
END;

CREATE TRIGGER tree_update_leaf
AFTER UPDATE ON tree_leaves
BEGIN
    UPDATE tree_branches
    SET
        ready_at = exact.ready_at,
        bury_at = exact.bury_at
    FROM (
        SELECT
            min(tree_leaves.ready_at) AS ready_at,
            min(tree_leaves.bury_at) AS bury_at
        FROM tree_leaves
        WHERE tree_leaves.leaf BETWEEN new.leaf & -256 AND new.leaf | 255
    ) AS exact
    WHERE
        tree_branches.branch = new.leaf >> 8
        AND (tree_branches.ready_at <> exact.ready_at OR tree_branches.bury_at <> exact.bury_at);
END;

CREATE TRIGGER tree_delete_leaf
AFTER DELETE ON tree_leaves
BEGIN
    DELETE FROM tree_branches
    WHERE
        tree_branches.branch = old.leaf >> 8
        AND NOT EXISTS (
            SELECT 1
            FROM tree_leaves
            WHERE tree_leaves.leaf BETWEEN old.leaf & -256 AND old.leaf | 255
        );
END;

CREATE TRIGGER tree_lower_inserted
AFTER INSERT ON jobs
WHEN
    new.status IN ('pending', 'leased')
    AND NOT EXISTS (
        SELECT 1
        FROM tree_leaves
        INNER JOIN open_jobs
            ON
                tree_leaves.ready_at <= open_jobs.ready_at
                AND tree_leaves.bury_at <= open_jobs.bury_at
        WHERE tree_leaves.leaf = new.seq >> 6 AND open_jobs.seq = new.seq
    )
BEGIN
    INSERT INTO tree_leaves (leaf, ready_at, bury_at)
    SELECT
        open_jobs.seq >> 6 AS leaf,
        open_jobs.ready_at,
        open_jobs.bury_at
    FROM open_jobs
    WHERE open_jobs.seq = new.seq
    ON CONFLICT (leaf) DO UPDATE
    SET
        ready_at = min(tree_leaves.ready_at, excluded.ready_at),
        bury_at = min(tree_leaves.bury_at, excluded.bury_at);
END;

CREATE TRIGGER tree_lower_updated
AFTER UPDATE OF seq, status, attempts, max_attempts, available_at, deadline, lease_until ON jobs
WHEN
    new.status IN ('pending', 'leased')
    AND NOT EXISTS (
        SELECT 1
        FROM tree_leaves
        INNER JOIN open_jobs
            ON
                tree_leaves.ready_at <= open_jobs.ready_at
                AND tree_leaves.bury_at <= open_jobs.bury_at
        WHERE tree_leaves.leaf = new.seq >> 6 AND open_jobs.seq = new.seq
    )
BEGIN
    INSERT INTO tree_leaves (leaf, ready_at, bury_at)
    SELECT
        open_jobs.seq >> 6 AS leaf,
        open_jobs.ready_at,
        open_jobs.bury_at
    FROM open_jobs
    WHERE open_jobs.seq = new.seq
    ON CONFLICT (leaf) DO UPDATE
    SET
        ready_at = min(tree_leaves.ready_at, excluded.ready_at),
        bury_at = min(tree_leaves.bury_at, excluded.bury_at);
END;

CREATE TRIGGER tree_raise_released
AFTER UPDATE OF status ON jobs
WHEN
    old.status = 'leased'
    AND new.status <> 'leased'
    AND EXISTS (
        SELECT 1
        FROM jobs
        WHERE jobs.seq > old.seq | 63
    )
    AND NOT EXISTS (
        SELECT 1
        FROM open_jobs
        WHERE
            open_jobs.seq BETWEEN old.seq + 1 AND old.seq | 63
            AND (open_jobs.status = 'leased' OR open_jobs.ready_at <= old.lease_until)
    )
    AND NOT EXISTS (
        SELECT 1
        FROM open_jobs
        WHERE
            open_jobs.seq BETWEEN old.seq & -64 AND old.seq - 1
            AND (open_jobs.status = 'leased' OR open_jobs.ready_at <= old.lease_until)
    )
BEGIN
    INSERT INTO tree_recount (leaf) VALUES (old.seq >> 6);
END;

CREATE TRIGGER tree_raise_edited
AFTER UPDATE OF seq, status, attempts, max_attempts, available_at, deadline ON jobs
WHEN
    old.status = 'pending'
    AND new.status <> 'leased'
    AND EXISTS (
        SELECT 1
        FROM jobs
        WHERE jobs.seq > old.seq | 63
    )
    AND NOT EXISTS (
        SELECT 1
        FROM open_jobs
        WHERE open_jobs.seq BETWEEN old.seq + 1 AND old.seq | 63
    )
BEGIN
    INSERT INTO tree_recount (leaf) VALUES (old.seq >> 6);
END;

CREATE TRIGGER tree_raise_deleted
AFTER DELETE ON jobs
WHEN
    old.status IN ('pending', 'leased')
    AND EXISTS (
        SELECT 1
        FROM jobs
        WHERE jobs.seq > old.seq | 63
    )
    AND NOT EXISTS (
        SELECT 1
        FROM open_jobs
        WHERE open_jobs.seq BETWEEN old.seq + 1 AND old.seq | 63
    )
BEGIN
    INSERT INTO tree_recount (leaf) VALUES (old.seq >> 6);
END;

INSERT INTO tree_leaves (leaf, ready_at, bury_at)
SELECT
    seq >> 6 AS leaf,
    min(ready_at) AS ready_at,
    min(bury_at) AS bury_at
FROM open_jobs
GROUP BY seq >> 6;

DROP INDEX IF EXISTS jobs_open_idx;
