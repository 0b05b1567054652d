-- doctor_newest: tell when the newest audit row says it was written.
--
-- Parameters
--   none
-- Result     optional; at_ms
-- Called by  lease.jobs._doctor.doctor
-- Plan       PRIMARY KEY
--
-- A text in the place of the instant, which an outsider may have put there, tells nothing.
SELECT newest.at_ms
FROM redrives AS newest
WHERE
    newest.seq = (SELECT max(redrives.seq) FROM redrives)
    AND typeof(newest.at_ms) = 'integer';
