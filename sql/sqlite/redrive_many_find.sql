-- redrive_many_find: look up the states of several jobs.
--
-- Parameters
--   :ids  text  JSON array of identifiers
-- Result     many; position, seq, status
-- Called by  lease.jobs._redrive_many.redrive_many,
--            lease.jobs._redrive_many.redrive_check
-- Plan       sqlite_autoindex_jobs_1
--
-- The position of an id is its place in the array, from 0; without a job it has no row.
SELECT
    wanted.key AS position,
    jobs.seq,
    jobs.status
FROM json_each(:ids) AS wanted
CROSS JOIN jobs
WHERE jobs.id = wanted.value
ORDER BY wanted.key ASC;
