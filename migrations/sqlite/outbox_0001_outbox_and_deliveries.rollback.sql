-- Removes the outbox with every event, pending ones included.

DROP TABLE deliveries;

DROP TABLE outbox;
