-- Removes the outbox's events; what was accepted before would be accepted anew.

DROP TABLE inbox_events;
