-- +goose Up

-- What it is for is said with SQLite's schema. It is no TSVECTOR, since what PostgreSQL finds in an index of those comes in
-- no order, so that all of it has to be read, and row-level security keeps that index from being used.
DROP TABLE words;
-- It refers to no other table, since each row would be looked up there; it is written and deleted with the belief.
CREATE TABLE words (
    namespace   BIGINT NOT NULL,
    stem        TEXT COLLATE "C" NOT NULL,
    note        SMALLINT NOT NULL,
    observed_at TEXT COLLATE "C" NOT NULL,
    seq         BIGINT NOT NULL,
    PRIMARY KEY (namespace, stem, note, observed_at, seq)
);

CREATE TABLE word_counts (
    namespace BIGINT NOT NULL,
    stem      TEXT COLLATE "C" NOT NULL,
    beliefs   BIGINT NOT NULL,
    PRIMARY KEY (namespace, stem)
) WITH (fillfactor = 70); -- counts change all the time, in place as long as there is room

-- +goose StatementBegin
DO $$
DECLARE
    t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['words', 'word_counts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (namespace = (SELECT nullif(current_setting(''sallyport.namespace'', true), '''')::BIGINT))', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

DROP INDEX beliefs_in_time;
CREATE INDEX beliefs_in_time ON beliefs (namespace, note, observed_at, seq);
CREATE INDEX beliefs_of_subject_in_time ON beliefs (namespace, subject_key, note, observed_at, seq);

ALTER TABLE namespaces ADD COLUMN indexed SMALLINT NOT NULL DEFAULT 1;
UPDATE namespaces SET indexed = 0;

-- Of the namespaces a transaction sees the one whose name it knows, unless it says that it lists them: then their names.
ALTER TABLE namespaces ENABLE ROW LEVEL SECURITY;
ALTER TABLE namespaces FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON namespaces USING (name = (SELECT current_setting('sallyport.name', true)));
CREATE POLICY listed ON namespaces FOR SELECT USING ((SELECT current_setting('sallyport.listing', true)) = 'on');

-- Opens a namespace to the transaction: its row, and then the rows of its number. The answer is null if there is none of
-- that name; then the transaction sees no rows. One who writes locks the row, so that writes wait for each other.
-- +goose StatementBegin
CREATE FUNCTION open_namespace(wanted TEXT, to_write BOOLEAN) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    found_num BIGINT;
BEGIN
    PERFORM set_config('sallyport.name', wanted, true);
    IF to_write THEN
        SELECT num INTO found_num FROM namespaces WHERE name = wanted FOR UPDATE;
    ELSE
        SELECT num INTO found_num FROM namespaces WHERE name = wanted;
    END IF;
    PERFORM set_config('sallyport.namespace', coalesce(found_num::TEXT, ''), true);
    RETURN found_num;
END
$$;
-- +goose StatementEnd
