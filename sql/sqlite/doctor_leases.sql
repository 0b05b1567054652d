-- doctor_leases: count the leases that end later than any lease may, or never.
--
-- Parameters
--   :latest_ms  integer  the present and the longest lease, milliseconds
-- Result     one; jobs
-- Called by  lease.jobs._doctor.doctor
-- Plan       scan (every job is looked at; the tree has no bound for the latest end)
SELECT count(*) AS jobs
FROM jobs
WHERE
    status = 'leased'
    AND (lease_until IS NULL OR lease_until > :latest_ms);
