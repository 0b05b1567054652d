-- dead_ids_page: read the ids of a batch of dead jobs, in the order of their intake.
--
-- Parameters
--   :reason     text     deadline, exhausted or permanent; NULL for any
--   :after_seq  integer  the seq that ended the batch before, NULL for the first
--   :last_seq   integer  the seq beyond which the walk does not go
--   :max_ids    integer  size of the batch
-- Result     many; seq, id
-- Called by  lease.jobs._dead_ids.dead_ids
-- Plan       PRIMARY KEY
--
-- Reads on from the batch before until this one is full, so that all of them together read each
-- job once. The first begins below every integer: an outsider may have chosen any seq.
SELECT
    seq,
    id
FROM jobs
WHERE
    seq > coalesce(:after_seq, -1e19)
    AND seq <= :last_seq
    AND status = 'dead'
    AND (:reason IS NULL OR reason = :reason)
ORDER BY seq ASC
LIMIT :max_ids;
