-- The events that come from an outbox: a type and a payload in place of a quantity.
--
-- The payload is kept, as canonical JSON: it is what the next delivery is compared with, and what
-- an application that gives no effect of its own reads later. Plain rowid table, since a row may
-- be long.
-- Cost on a large table: none.

CREATE TABLE inbox_events (
    seq INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    requests INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    CONSTRAINT inbox_events_id_is_identifier CHECK (
        typeof(id) = 'text'
        AND length(id) BETWEEN 1 AND 64
        AND instr(id, char(0)) = 0
        AND id NOT GLOB '*[^A-Za-z0-9_-]*'
    ),
    CONSTRAINT inbox_events_requests_counted CHECK (
        typeof(requests) = 'integer' AND requests >= 1
    ),
    CONSTRAINT inbox_events_times_in_order CHECK (
        typeof(first_ms) = 'integer'
        AND typeof(last_ms) = 'integer'
        AND first_ms BETWEEN 0 AND last_ms
        AND last_ms <= 1000000000000000
    )
);
