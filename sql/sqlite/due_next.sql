-- due_next: tell the earliest instant at which a claim would change something.
--
-- Parameters
--   none
-- Result     one; due_ms
-- Called by  lease.jobs._due.next_due
-- Plan       jobs_open_idx
--
-- A pending job is due when it becomes available or its deadline passes, at once if its attempts
-- are used up; a leased one when its lease ends, which no deadline precedes. NULL means that no
-- job is open. An idle worker asks this in place of a claim, which would take the write lock.
SELECT
    min(
        CASE
            WHEN status = 'leased' THEN lease_until
            WHEN attempts >= max_attempts THEN 0
            ELSE min(available_at, deadline)
        END
    ) AS due_ms
FROM jobs
WHERE status IN ('pending', 'leased');
