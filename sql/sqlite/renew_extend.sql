-- renew_extend: move the end of a job's lease.
--
-- Parameters
--   :id               text     identifier of the job
--   :new_lease_until  integer  new lease end, milliseconds
-- Result     count
-- Called by  lease.jobs._renew.renew
-- Plan       sqlite_autoindex_jobs_1
--
-- Runs after renew_find in the same transaction, which has judged the ticket. Token and attempt
-- stay; the lease end is part of the ticket, so that the old ticket is stale from now on.
UPDATE jobs
SET lease_until = :new_lease_until
WHERE id = :id;
