-- doctor_lock: tell which process holds the lock of the yoyo command.
--
-- Parameters
--   none
-- Result     optional; pid
-- Called by  lease.jobs._doctor.doctor
-- Plan       scan (the table has one row at most)
--
-- The row stays when that process is killed; lease has a lock of its own and does not ask for it.
SELECT pid
FROM yoyo_lock;
