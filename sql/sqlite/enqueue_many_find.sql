-- enqueue_many_find: look up the quantities already recorded under several ids.
--
-- Parameters
--   :ids  text  JSON array of identifiers
-- Result     many; id, qty
-- Called by  lease.jobs._enqueue_many.enqueue_many
-- Plan       sqlite_autoindex_jobs_1
SELECT
    jobs.id,
    jobs.qty
FROM json_each(:ids) AS wanted
CROSS JOIN jobs
WHERE jobs.id = wanted.value;
