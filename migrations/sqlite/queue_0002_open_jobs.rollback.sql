-- Removes the index; a claim then reads every job.

DROP INDEX jobs_open_idx;
