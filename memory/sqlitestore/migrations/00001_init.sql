-- +goose Up

-- A namespace is known by its number everywhere else.
CREATE TABLE namespaces (
    num  INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- Events are appended and never changed. Instants are UTC with nine digits after the point, so that text order is time order.
CREATE TABLE events (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace   INTEGER NOT NULL REFERENCES namespaces (num),
    id          TEXT NOT NULL,
    subject     TEXT NOT NULL,
    predicate   TEXT NOT NULL,
    observed_at TEXT NOT NULL,
    value       TEXT NOT NULL, -- a JSON scalar; null in a retraction of every value
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    confidence  REAL NOT NULL,
    retraction  INTEGER NOT NULL,
    replaces    TEXT NOT NULL, -- a JSON array, or empty
    replaced_by TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    evidence_id TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_pair ON events (namespace, subject, predicate, observed_at, seq);
CREATE INDEX events_in_time ON events (namespace, observed_at);
CREATE UNIQUE INDEX events_by_id ON events (namespace, id);

-- What the events amount to. It is written in the transaction that appends them, and can be built from them again.
CREATE TABLE beliefs (
    seq         INTEGER PRIMARY KEY REFERENCES events (seq),
    namespace   INTEGER NOT NULL REFERENCES namespaces (num),
    id          TEXT NOT NULL,
    subject     TEXT NOT NULL,
    predicate   TEXT NOT NULL,
    note        INTEGER NOT NULL,
    observed_at TEXT NOT NULL,
    value       TEXT NOT NULL,
    same        TEXT NOT NULL, -- equal for values that count as the same
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    confidence  REAL NOT NULL,
    evidence    TEXT NOT NULL,
    evidence_id TEXT NOT NULL,
    replaced    TEXT NOT NULL -- a JSON array, or empty
) STRICT;
CREATE INDEX beliefs_of_subject ON beliefs (namespace, subject, note, predicate, observed_at, seq);
CREATE INDEX beliefs_of_predicate ON beliefs (namespace, predicate, subject, observed_at, seq);
CREATE INDEX beliefs_of_value ON beliefs (namespace, subject, same);
CREATE INDEX beliefs_in_time ON beliefs (namespace, observed_at);

-- The words of every statement, rowid = events.seq. Each word carries its namespace in front, see words.go. The text is
-- not kept here: events are never deleted, so the index needs no copy.
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = "porter unicode61 remove_diacritics 2");

CREATE TABLE predicates (
    namespace   INTEGER NOT NULL REFERENCES namespaces (num),
    name        TEXT NOT NULL,
    cardinality TEXT NOT NULL,
    value_type  TEXT NOT NULL,
    description TEXT NOT NULL,
    defined_at  TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- Who holds an agent, and how many records it has.
CREATE TABLE agents (
    namespace  INTEGER NOT NULL REFERENCES namespaces (num),
    agent      TEXT NOT NULL,
    epoch      INTEGER NOT NULL DEFAULT 0,
    held       INTEGER NOT NULL DEFAULT 0,
    pod        TEXT NOT NULL DEFAULT '',
    connection TEXT NOT NULL DEFAULT '',
    holder     TEXT NOT NULL DEFAULT '',
    ttl_ms     INTEGER NOT NULL DEFAULT 0,
    expires    TEXT NOT NULL DEFAULT '0001-01-01T00:00:00.000000000Z',
    turn_seq   INTEGER NOT NULL DEFAULT 0,
    action_seq INTEGER NOT NULL DEFAULT 0,
    output_seq INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, agent)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    namespace  INTEGER NOT NULL REFERENCES namespaces (num),
    agent      TEXT NOT NULL,
    pod        TEXT NOT NULL,
    connection TEXT NOT NULL,
    resumed    INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    rank       INTEGER NOT NULL,
    holder     TEXT NOT NULL,
    ttl_ms     INTEGER NOT NULL,
    budget     INTEGER NOT NULL,
    threshold  INTEGER NOT NULL,
    PRIMARY KEY (namespace, agent, pod, connection)
) STRICT, WITHOUT ROWID;

CREATE TABLE states (
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    agent     TEXT NOT NULL,
    version   INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, version)
) STRICT;

CREATE TABLE turns (
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    agent     TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, seq)
) STRICT;

CREATE TABLE outputs (
    written   INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    agent     TEXT NOT NULL,
    ref       TEXT NOT NULL,
    tool      TEXT NOT NULL,
    summary   TEXT NOT NULL,
    tokens    INTEGER NOT NULL,
    at        TEXT NOT NULL,
    content   TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX outputs_by_ref ON outputs (namespace, agent, ref);
CREATE INDEX outputs_of_agent ON outputs (namespace, agent, written);

CREATE TABLE pointers (
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    agent     TEXT NOT NULL,
    name      TEXT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE actions (
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    agent     TEXT NOT NULL,
    seq       INTEGER NOT NULL,
    open      INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, seq)
) STRICT;
CREATE INDEX open_actions ON actions (namespace, agent, seq) WHERE open = 1;
