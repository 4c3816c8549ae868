-- A NULL expires_at never comes. Texts compare byte by byte, as in SQLite. regime is JSON, or empty. Whoever follows
-- revocations is notified, so that there is no table of them.

-- +goose Up
CREATE TABLE keys (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind            TEXT COLLATE "C" NOT NULL CHECK (kind IN ('signed', 'static', 'admin')),
    namespace       TEXT COLLATE "C" NOT NULL,
    tenant          TEXT COLLATE "C" NOT NULL,
    agent           TEXT COLLATE "C" NOT NULL,
    session         TEXT COLLATE "C" NOT NULL,
    pod_namespace   TEXT COLLATE "C" NOT NULL,
    pod_uid         TEXT COLLATE "C" NOT NULL,
    service_account TEXT COLLATE "C" NOT NULL,
    regime          TEXT COLLATE "C" NOT NULL,
    note            TEXT COLLATE "C" NOT NULL,
    secret_hash     BYTEA,
    created_at      TIMESTAMPTZ NOT NULL,
    expires_at      TIMESTAMPTZ,
    revoked_at      TIMESTAMPTZ,
    revoked_for     TEXT COLLATE "C" NOT NULL,
    CHECK ((kind = 'signed') = (secret_hash IS NULL)),
    CHECK (kind <> 'signed' OR expires_at IS NOT NULL)
);

CREATE INDEX keys_by_expiry ON keys (expires_at);

-- Those not revoked only: nobody looks for the others by their pod.
CREATE INDEX keys_by_pod ON keys (pod_namespace, session) WHERE kind = 'signed' AND revoked_at IS NULL;
CREATE INDEX keys_by_pod_uid ON keys (pod_uid) WHERE kind = 'signed' AND revoked_at IS NULL;

CREATE TABLE verification_keys (
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    public    BYTEA NOT NULL CHECK (length(public) = 32),
    not_after TIMESTAMPTZ NOT NULL
);
