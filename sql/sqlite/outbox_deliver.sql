-- outbox_deliver: write the one row that stands for a record's effect.
--
-- Parameters
--   :outbox_id     text  identifier of the record
--   :body_json     text  the payload that took effect
--   :delivered_at  text  caller's clock, UTC, ISO 8601
-- Result     none
-- Called by  lease.outbox._settle.settle
-- Plan       -
--
-- The primary key turns a second effect of one record away, whoever tries.
INSERT INTO deliveries (outbox_id, body_json, delivered_at)
VALUES (:outbox_id, :body_json, :delivered_at);
