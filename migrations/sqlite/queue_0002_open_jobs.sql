-- The jobs that may still run, in claim order; serves claim_quarantine and claim_take.
--
-- Done and dead jobs, which only ever grow in number, are not in it.
-- Cost on a large table: one pass over jobs.

CREATE INDEX IF NOT EXISTS jobs_open_idx ON jobs (seq)
WHERE status IN ('pending', 'leased');
