-- +goose Up

-- What it is for is said with SQLite's schema.
CREATE TABLE vectors (
    seq       BIGINT PRIMARY KEY REFERENCES events (seq),
    namespace BIGINT NOT NULL REFERENCES namespaces (num),
    model     TEXT COLLATE "C" NOT NULL,
    size      INTEGER NOT NULL,
    numbers   BYTEA NOT NULL
);
CREATE INDEX vectors_of_namespace ON vectors (namespace, seq);

ALTER TABLE vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON vectors USING (namespace = (SELECT nullif(current_setting('sallyport.namespace', true), '')::BIGINT));
