-- Removes the tally; stats then counts every job.

DROP TRIGGER tally_updated;

DROP TRIGGER tally_moved;

DROP TRIGGER tally_replaced;

DROP TRIGGER tally_inserted;

DROP TRIGGER tally_deleted;

DROP VIEW tally_touched;

DROP VIEW tally_changes;

DROP VIEW counted_jobs;

DROP TABLE tally_busy;

DROP TABLE tally_totals;
