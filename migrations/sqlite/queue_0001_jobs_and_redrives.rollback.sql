-- Removes the queue with every job and every audit row in it.

DROP TABLE redrives;

DROP TABLE jobs;
