-- open_probe: fail unless both tables have the columns that the queue works on.
--
-- Parameters
--   none
-- Result     none
-- Called by  lease.jobs._open.create_queue
-- Plan       scan (compiled only; no row is read)
SELECT
    jobs.seq,
    jobs.id,
    jobs.qty,
    jobs.status,
    jobs.attempts,
    jobs.max_attempts,
    jobs.token,
    jobs.available_at,
    jobs.deadline,
    jobs.owner,
    jobs.lease_until,
    jobs.reason,
    redrives.seq AS redrive_seq,
    redrives.at_ms,
    redrives.note
FROM jobs
INNER JOIN redrives ON jobs.id = redrives.id AND jobs.token = redrives.token
ORDER BY jobs.seq ASC
LIMIT 0;
