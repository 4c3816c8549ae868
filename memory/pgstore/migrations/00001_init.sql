-- +goose Up

-- What the columns mean is said with SQLite's schema; here is what PostgreSQL does differently. Texts compare byte by byte,
-- as in SQLite. Flags are 0 or 1, and instants are texts with nanoseconds.
--
-- Tables have row-level security, for their owner too: a transaction sees the rows of the namespace that it named, and
-- none at all before it named one. Every statement says its namespace as well; this is the second wall.

CREATE TABLE namespaces (
    num  BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE events (
    seq         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace   BIGINT NOT NULL REFERENCES namespaces (num),
    id          TEXT COLLATE "C" NOT NULL,
    subject     TEXT COLLATE "C" NOT NULL,
    subject_key TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (md5(subject)) STORED,
    predicate   TEXT COLLATE "C" NOT NULL,
    observed_at TEXT COLLATE "C" NOT NULL,
    value       TEXT NOT NULL,
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    confidence  DOUBLE PRECISION NOT NULL,
    retraction  SMALLINT NOT NULL,
    replaces    TEXT NOT NULL,
    replaced_by TEXT NOT NULL,
    evidence    TEXT NOT NULL,
    evidence_id TEXT NOT NULL
);
-- A hash of the subject stands in the indexes, since a subject may be longer than an entry of an index may be. It is a
-- column, since row-level security keeps indexes on expressions from being used.
CREATE INDEX events_of_pair ON events (namespace, subject_key, predicate, observed_at, seq);
CREATE INDEX events_of_subject ON events (namespace, subject_key, observed_at, seq);
CREATE INDEX events_in_time ON events (namespace, observed_at);
CREATE UNIQUE INDEX events_by_id ON events (namespace, id);

CREATE TABLE beliefs (
    seq         BIGINT PRIMARY KEY REFERENCES events (seq),
    namespace   BIGINT NOT NULL REFERENCES namespaces (num),
    id          TEXT COLLATE "C" NOT NULL,
    subject     TEXT COLLATE "C" NOT NULL,
    subject_key TEXT COLLATE "C" NOT NULL GENERATED ALWAYS AS (md5(subject)) STORED,
    predicate   TEXT COLLATE "C" NOT NULL,
    note        SMALLINT NOT NULL,
    observed_at TEXT COLLATE "C" NOT NULL,
    value       TEXT NOT NULL,
    same        TEXT COLLATE "C" NOT NULL,
    kind        TEXT NOT NULL,
    source      TEXT NOT NULL,
    confidence  DOUBLE PRECISION NOT NULL,
    evidence    TEXT NOT NULL,
    evidence_id TEXT NOT NULL,
    replaced    TEXT NOT NULL
);
CREATE INDEX beliefs_of_subject ON beliefs (namespace, subject_key, note, predicate, observed_at, seq);
-- The subject is in it so that it serves as well as the others whichever PostgreSQL takes before it knows the table.
CREATE INDEX beliefs_of_predicate ON beliefs (namespace, predicate, subject_key, observed_at, seq);
CREATE INDEX beliefs_of_value ON beliefs (namespace, subject_key, same);
CREATE INDEX beliefs_in_time ON beliefs (namespace, observed_at);

-- The stems of every statement's words, each with its namespace in front (words.go): so the index of one namespace is
-- not searched for another's words. This table and the one of names have no row-level security: it would keep the index
-- from being used. What is found here is only ever joined to rows that have it.
CREATE TABLE words (
    seq       BIGINT PRIMARY KEY REFERENCES events (seq),
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    stems     TSVECTOR NOT NULL,
    total     INTEGER NOT NULL -- words, each counted as often as it occurs
);
CREATE INDEX words_by_stem ON words USING gin (stems) WITH (fastupdate = off);

CREATE TABLE predicates (
    namespace   BIGINT NOT NULL REFERENCES namespaces (num),
    name        TEXT COLLATE "C" NOT NULL,
    cardinality TEXT NOT NULL,
    value_type  TEXT NOT NULL,
    description TEXT NOT NULL,
    defined_at  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE agents (
    namespace  BIGINT NOT NULL REFERENCES namespaces (num),
    agent      TEXT COLLATE "C" NOT NULL,
    epoch      BIGINT NOT NULL DEFAULT 0,
    held       SMALLINT NOT NULL DEFAULT 0,
    pod        TEXT NOT NULL DEFAULT '',
    connection TEXT NOT NULL DEFAULT '',
    holder     TEXT NOT NULL DEFAULT '',
    ttl_ms     BIGINT NOT NULL DEFAULT 0,
    expires    TEXT COLLATE "C" NOT NULL DEFAULT '0001-01-01T00:00:00.000000000Z',
    turn_seq   BIGINT NOT NULL DEFAULT 0,
    action_seq BIGINT NOT NULL DEFAULT 0,
    output_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, agent)
);

CREATE TABLE sessions (
    namespace  BIGINT NOT NULL REFERENCES namespaces (num),
    agent      TEXT COLLATE "C" NOT NULL,
    pod        TEXT COLLATE "C" NOT NULL,
    connection TEXT COLLATE "C" NOT NULL,
    resumed    SMALLINT NOT NULL,
    epoch      BIGINT NOT NULL,
    rank       BIGINT NOT NULL,
    holder     TEXT NOT NULL,
    ttl_ms     BIGINT NOT NULL,
    budget     BIGINT NOT NULL,
    threshold  BIGINT NOT NULL,
    PRIMARY KEY (namespace, agent, pod, connection)
);

CREATE TABLE states (
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    agent     TEXT COLLATE "C" NOT NULL,
    version   BIGINT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, version)
);

CREATE TABLE turns (
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    agent     TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, seq)
);

CREATE TABLE outputs (
    written   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    agent     TEXT COLLATE "C" NOT NULL,
    ref       TEXT COLLATE "C" NOT NULL,
    tool      TEXT NOT NULL,
    summary   TEXT NOT NULL,
    tokens    BIGINT NOT NULL,
    at        TEXT COLLATE "C" NOT NULL,
    content   TEXT NOT NULL
);
CREATE UNIQUE INDEX outputs_by_ref ON outputs (namespace, agent, ref);
CREATE INDEX outputs_of_agent ON outputs (namespace, agent, written);

CREATE TABLE pointers (
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    agent     TEXT COLLATE "C" NOT NULL,
    name      TEXT COLLATE "C" NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, name)
);

CREATE TABLE actions (
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    agent     TEXT COLLATE "C" NOT NULL,
    seq       BIGINT NOT NULL,
    open      SMALLINT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (namespace, agent, seq)
);
CREATE INDEX open_actions ON actions (namespace, agent, seq) WHERE open = 1;

-- +goose StatementBegin
DO $$
DECLARE
    t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['events', 'beliefs', 'predicates', 'agents', 'sessions', 'states', 'turns', 'outputs', 'pointers', 'actions'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (namespace = (SELECT nullif(current_setting(''sallyport.namespace'', true), '''')::BIGINT))', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
