-- Removes the tree and puts the index back; a claim then reads every job.

DROP TRIGGER tree_lower_inserted;

DROP TRIGGER tree_lower_updated;

DROP TRIGGER tree_raise_released;

DROP TRIGGER tree_raise_edited;

DROP TRIGGER tree_raise_deleted;

DROP VIEW tree_recount;

DROP VIEW open_jobs;

DROP TABLE tree_leaves;

DROP TABLE tree_branches;

CREATE INDEX IF NOT EXISTS jobs_open_idx ON jobs (seq)
WHERE status IN ('pending', 'leased');
