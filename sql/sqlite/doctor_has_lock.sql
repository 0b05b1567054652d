-- doctor_has_lock: tell whether the yoyo command has ever worked on this file.
--
-- Parameters
--   none
-- Result     optional; name
-- Called by  lease.jobs._doctor.doctor
-- Plan       scan (the catalogue has a handful of rows)
SELECT name
FROM sqlite_schema
WHERE type = 'table' AND name = 'yoyo_lock';
