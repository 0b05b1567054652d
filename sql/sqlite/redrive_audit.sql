-- redrive_audit: record who was revived when, after which token, and the operator's note.
--
-- Parameters
--   :job_id  text     identifier of the job
--   :now_ms  integer  caller's clock, milliseconds
--   :note    text     identifier that the operator gives as the reason
-- Result     count
-- Called by  lease.jobs._redrive.redrive
-- Plan       sqlite_autoindex_jobs_1
INSERT INTO redrives (id, token, at_ms, note)
SELECT
    jobs.id,
    jobs.token,
    :now_ms AS at_ms,
    :note AS note
FROM jobs
WHERE jobs.id = :job_id;
