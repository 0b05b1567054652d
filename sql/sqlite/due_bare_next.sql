-- due_bare_next: tell the same as due_next, in a file without the tree.
--
-- Parameters
--   none
-- Result     one; due_ms
-- Called by  lease.jobs._due.next_due
-- Plan       scan (a file without the tree)
SELECT
    min(
        CASE
            WHEN status = 'leased' THEN lease_until
            WHEN attempts >= max_attempts THEN min(0, available_at)
            ELSE min(available_at, deadline)
        END
    ) AS due_ms
FROM jobs
WHERE status IN ('pending', 'leased');
