-- Times are microseconds since 1970, UTC. A NULL expires_at never comes.

-- +goose Up
CREATE TABLE keys (
    id              TEXT    NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL CHECK (kind IN ('signed', 'static', 'admin')),
    namespace       TEXT    NOT NULL,
    tenant          TEXT    NOT NULL,
    agent           TEXT    NOT NULL,
    session         TEXT    NOT NULL,
    pod_uid         TEXT    NOT NULL,
    service_account TEXT    NOT NULL,
    note            TEXT    NOT NULL,
    secret_hash     BLOB,
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER,
    revoked_at      INTEGER,
    revoked_for     TEXT    NOT NULL DEFAULT '',
    CHECK ((kind = 'signed') = (secret_hash IS NULL)),
    CHECK (kind <> 'signed' OR expires_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_expiry ON keys (expires_at);

-- The order in which keys were revoked, for those who follow it.
CREATE TABLE revocations (
    seq    INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    key_id TEXT    NOT NULL
) STRICT;

CREATE TABLE verification_keys (
    id        TEXT    NOT NULL PRIMARY KEY,
    public    BLOB    NOT NULL CHECK (length(public) = 32),
    not_after INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
