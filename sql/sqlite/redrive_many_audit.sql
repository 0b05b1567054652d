-- redrive_many_audit: record who was revived in what order, as redrive_audit does for one.
--
-- Parameters
--   :seqs    text     JSON array of the dead jobs that redrive_many_find has found, each once
--   :now_ms  integer  caller's clock, milliseconds
--   :note    text     identifier that the operator gives as the reason
-- Result     none
-- Called by  lease.jobs._redrive_many.redrive_many
-- Plan       PRIMARY KEY
INSERT INTO redrives (id, token, at_ms, note)
SELECT
    jobs.id,
    jobs.token,
    :now_ms AS at_ms,
    :note AS note
FROM json_each(:seqs) AS chosen
CROSS JOIN jobs
WHERE jobs.seq = chosen.value
ORDER BY chosen.key ASC;
