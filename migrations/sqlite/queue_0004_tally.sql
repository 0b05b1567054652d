-- The tally: how many jobs there are of each state and reason; serves stats_states.
--
-- A block stands for 128 consecutive seqs. At most 8 blocks are busy: those in which a job has
-- changed most lately. The totals count the jobs of all other blocks; those of the busy ones are
-- counted when somebody asks:
--
--     jobs            [ block 0 ] [ block 1 ] [ block 2 ] [ block 3 ] ... [ block 7812 ]
--     tally_busy                              [ block 2 ]                 [ block 7812 ]
--     tally_totals    done 256, pending 999 ..., over all blocks but the two that are busy
--
-- Invariant, after every statement: the totals are exact for the jobs whose block is not busy.
-- The view counted_jobs says what is told apart; zero rows may stand in the totals.
--
-- Triggers keep it so under anybody's SQL. The first change of a job in a quiet block makes the
-- block busy: it is counted as it was, and its counts are taken from the totals. The changes after
-- that write nothing here. When a ninth block gets busy, the one that has been busy longest
-- is counted and put back. So the jobs of a queue, which come, are claimed and are finished one
-- block after the other, write two pages here once in 128 jobs.
--
-- A change that involves several blocks, such as that of a seq, touches each of them, busy or not:
-- the block that was touched last is the last to be put back, so that none of them is put back
-- before the change is made.
--
-- A token is the number of claims made of its job. One that nobody can have come to, beyond a
-- million million or no integer at all, counts as none, so that no sum overflows.
--
-- `seq >> 7` is a job's block; `x << 7` and `x << 7 | 127` are the first and last seq of block x.
-- OR REPLACE deletes the row that it meets without a DELETE that a trigger would see; so the
-- blocks of such rows become busy beforehand.
--
-- Cost on a large table: one pass over jobs, about a second for a million.

CREATE TABLE tally_totals (
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    PRIMARY KEY (status, reason)
) WITHOUT ROWID;

CREATE TABLE tally_busy (
    block INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL
);

CREATE VIEW counted_jobs AS
SELECT
    seq,
    status,
    CASE
        WHEN status = 'dead' AND reason IN ('deadline', 'exhausted', 'permanent') THEN reason
        ELSE ''
    END AS reason,
    CASE
        WHEN typeof(token) = 'integer' AND token BETWEEN 0 AND 1000000000000 THEN token
        ELSE 0
    END AS claims
FROM jobs;

CREATE VIEW tally_changes AS
SELECT
    status,
    reason,
    jobs,
    claims
FROM tally_totals;

CREATE TRIGGER tally_add_change
INSTEAD OF INSERT ON tally_changes
BEGIN
    INSERT INTO tally_totals (status, reason, jobs, claims)
    VALUES (new.status, new.reason, new.jobs, new.claims)
    ON CONFLICT (status, reason) DO UPDATE
    SET
        jobs = tally_totals.jobs + excluded.jobs,
        claims = tally_totals.claims + excluded.claims;
END;

CREATE TRIGGER tally_take_block_out
AFTER INSERT ON tally_busy
BEGIN
    INSERT INTO tally_changes (status, reason, jobs, claims)
    SELECT
        counted_jobs.status,
        counted_jobs.reason,
        -count(*) AS jobs,
        -sum(counted_jobs.claims) AS claims
    FROM counted_jobs
    WHERE counted_jobs.seq BETWEEN new.block << 7 AND new.block << 7 | 127
    GROUP BY counted_jobs.status, counted_jobs.reason;
    DELETE FROM tally_busy
    WHERE
        tally_busy.turn = (SELECT min(busy.turn) FROM tally_busy AS busy)
        AND (SELECT count(*) FROM tally_busy) > 8;
END;

CREATE TRIGGER tally_put_block_back
AFTER DELETE ON tally_busy
BEGIN
    INSERT INTO tally_changes (status, reason, jobs, claims)
    SELECT
        counted_jobs.status,
        counted_jobs.reason,
        count(*) AS jobs,
        sum(counted_jobs.claims) AS claims
    FROM counted_jobs
    WHERE counted_jobs.seq BETWEEN old.block << 7 AND old.block << 7 | 127
    GROUP BY counted_jobs.status, counted_jobs.reason;
END;

CREATE VIEW tally_touched AS
SELECT block
FROM tally_busy;

CREATE TRIGGER tally_touch_block
INSTEAD OF INSERT ON tally_touched
BEGIN
    INSERT INTO tally_busy (block, turn)
    VALUES (new.block, (SELECT coalesce(max(tally_busy.turn), 0) + 1 FROM tally_busy))
    ON CONFLICT (block) DO UPDATE
    SET turn = excluded.turn;
END;

CREATE TRIGGER tally_updated
BEFORE UPDATE OF status, reason, token ON jobs
WHEN
    NOT EXISTS (
        SELECT 1
        FROM tally_busy
        WHERE tally_busy.block = old.seq >> 7
    )
BEGIN
    INSERT INTO tally_touched (block) VALUES (old.seq >> 7);
END;

CREATE TRIGGER tally_moved
BEFORE UPDATE OF seq, id ON jobs
BEGIN
    INSERT INTO tally_touched (block)
    SELECT old.seq >> 7 AS block
    UNION
    SELECT new.seq >> 7 AS block
    UNION
    SELECT jobs.seq >> 7 AS block
    FROM jobs
    WHERE jobs.id = new.id;
END;

CREATE TRIGGER tally_replaced
BEFORE INSERT ON jobs
WHEN
    EXISTS (
        SELECT 1
        FROM jobs
        WHERE jobs.id = new.id
    )
    OR EXISTS (
        SELECT 1
        FROM jobs
        WHERE jobs.seq = new.seq
    )
BEGIN
    INSERT INTO tally_touched (block)
    SELECT jobs.seq >> 7 AS block
    FROM jobs
    WHERE jobs.id = new.id OR jobs.seq = new.seq;
END;

CREATE TRIGGER tally_inserted
AFTER INSERT ON jobs
WHEN
    NOT EXISTS (
        SELECT 1
        FROM tally_busy
        WHERE tally_busy.block = new.seq >> 7
    )
BEGIN
    INSERT INTO tally_touched (block) VALUES (new.seq >> 7);
    INSERT INTO tally_changes (status, reason, jobs, claims)
    SELECT
        counted_jobs.status,
        counted_jobs.reason,
        1 AS jobs,
        counted_jobs.claims
    FROM counted_jobs
    WHERE counted_jobs.seq = new.seq;
END;

CREATE TRIGGER tally_deleted
BEFORE DELETE ON jobs
WHEN
    NOT EXISTS (
        SELECT 1
        FROM tally_busy
        WHERE tally_busy.block = old.seq >> 7
    )
BEGIN
    INSERT INTO tally_touched (block) VALUES (old.seq >> 7);
END;

INSERT INTO tally_totals (status, reason, jobs, claims)
SELECT
    status,
    reason,
    count(*) AS jobs,
    sum(claims) AS claims
FROM counted_jobs
GROUP BY status, reason;
