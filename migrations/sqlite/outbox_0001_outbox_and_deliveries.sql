-- The outbox: one row an event, one row an event that has taken effect.
--
-- `seq` is the order of recording: times may repeat or go back, and the implicit rowid of a
-- table without such a column is VACUUM's to renumber. Plain SQL that names id, event_type,
-- payload_json, state and created_at still records an event.
-- `dispatched_at` is the last push that a server acknowledged; it tells whether one is overdue.
-- Ids and types are what `lease.outbox.record` takes, so that one row cannot stop the others.
-- GLOB ends at a NUL, and so does the length of a text; instr does not.
-- The key of `deliveries` is the idempotency key: one event, one effect.
-- Cost on a large table: none.

CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'processed')),
    dispatch_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    processed_at TEXT,
    dispatched_at TEXT,
    CONSTRAINT outbox_id_is_identifier CHECK (
        typeof(id) = 'text'
        AND length(id) BETWEEN 1 AND 64
        AND instr(id, char(0)) = 0
        AND id NOT GLOB '*[^A-Za-z0-9_-]*'
    ),
    CONSTRAINT outbox_event_type_is_word CHECK (
        typeof(event_type) = 'text'
        AND length(event_type) BETWEEN 1 AND 128
        AND instr(event_type, char(0)) = 0
        AND event_type NOT GLOB '*[^A-Za-z0-9._:/-]*'
    ),
    CONSTRAINT outbox_payload_is_text CHECK (typeof(payload_json) = 'text')
);

CREATE TABLE IF NOT EXISTS deliveries (
    outbox_id TEXT PRIMARY KEY NOT NULL REFERENCES outbox (id),
    body_json TEXT NOT NULL,
    delivered_at TEXT NOT NULL
);
