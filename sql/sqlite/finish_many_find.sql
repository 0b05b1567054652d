-- finish_many_find: tell which tickets of a batch are current, by the guard of finish_settle.
--
-- Parameters
--   :tickets  text     JSON array of [id, qty, owner, token, attempt, lease_until]
--   :now_ms   integer  caller's clock, milliseconds
-- Result     many; position, seq
-- Called by  lease.jobs._settle.settle
-- Plan       sqlite_autoindex_jobs_1
--
-- The position of a ticket is its place in the array, from 0. A ticket that stands there twice
-- is current twice; the first counts.
SELECT
    ticket.key AS position,
    jobs.seq
FROM json_each(:tickets) AS ticket
CROSS JOIN jobs
WHERE
    jobs.id = json_extract(ticket.value, '$[0]')
    AND jobs.status = 'leased'
    AND jobs.qty = json_extract(ticket.value, '$[1]')
    AND jobs.owner = json_extract(ticket.value, '$[2]')
    AND jobs.token = json_extract(ticket.value, '$[3]')
    AND jobs.attempts = json_extract(ticket.value, '$[4]')
    AND jobs.lease_until = json_extract(ticket.value, '$[5]')
    AND jobs.lease_until > :now_ms
    AND jobs.deadline > :now_ms
ORDER BY ticket.key ASC;
