-- The inbox: one row an accepted event, and the effect that needs no application.
--
-- An inbox is only ever looked into by id, hence no second tree for a rowid.
-- Cost on a large table: none.

CREATE TABLE inbox (
    id TEXT NOT NULL PRIMARY KEY,
    qty INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    CONSTRAINT inbox_id_is_identifier CHECK (
        typeof(id) = 'text'
        AND length(id) BETWEEN 1 AND 64
        AND instr(id, char(0)) = 0
        AND id NOT GLOB '*[^A-Za-z0-9_-]*'
    ),
    CONSTRAINT inbox_qty_in_range CHECK (typeof(qty) = 'integer' AND qty BETWEEN 1 AND 1000),
    CONSTRAINT inbox_requests_counted CHECK (typeof(requests) = 'integer' AND requests >= 1),
    CONSTRAINT inbox_times_in_order CHECK (
        typeof(first_ms) = 'integer'
        AND typeof(last_ms) = 'integer'
        AND first_ms BETWEEN 0 AND last_ms
        AND last_ms <= 1000000000000000
    )
) WITHOUT ROWID;

CREATE TABLE effects (
    seq INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE REFERENCES inbox (id),
    qty INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    CONSTRAINT effects_qty_in_range CHECK (typeof(qty) = 'integer' AND qty BETWEEN 1 AND 1000),
    CONSTRAINT effects_at_ms_in_range CHECK (
        typeof(at_ms) = 'integer' AND at_ms BETWEEN 0 AND 1000000000000000
    )
);
