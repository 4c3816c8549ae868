-- +goose Up

-- What it is for is said with SQLite's schema.
CREATE TABLE usage (
    namespace BIGINT PRIMARY KEY REFERENCES namespaces (num),
    records   BIGINT NOT NULL,
    bytes     BIGINT NOT NULL
);

-- To count what is there, this transaction has to see the rows of every namespace.
-- +goose StatementBegin
DO $$
DECLARE
    t TEXT;
BEGIN
    FOREACH t IN ARRAY ARRAY['events', 'predicates', 'agents', 'sessions', 'states', 'turns', 'outputs', 'pointers', 'actions'] LOOP
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', t);
    END LOOP;

    INSERT INTO usage (namespace, records, bytes)
    SELECT namespace, count(*), sum(bytes) FROM (
        SELECT namespace, octet_length(subject) + octet_length(predicate) + octet_length(value) + octet_length(evidence) + octet_length(replaces) AS bytes FROM events
        UNION ALL SELECT namespace, octet_length(name) + octet_length(description) FROM predicates
        UNION ALL SELECT namespace, octet_length(agent) FROM agents
        UNION ALL SELECT namespace, octet_length(agent) + octet_length(pod) + octet_length(connection) FROM sessions
        UNION ALL SELECT namespace, octet_length(body) FROM states
        UNION ALL SELECT namespace, octet_length(body) FROM turns
        UNION ALL SELECT namespace, octet_length(body) FROM pointers
        UNION ALL SELECT namespace, octet_length(body) FROM actions
        UNION ALL SELECT namespace, octet_length(tool) + octet_length(summary) + octet_length(content) FROM outputs
    ) AS held GROUP BY namespace;

    FOREACH t IN ARRAY ARRAY['events', 'predicates', 'agents', 'sessions', 'states', 'turns', 'outputs', 'pointers', 'actions'] LOOP
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

ALTER TABLE usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON usage USING (namespace = (SELECT nullif(current_setting('sallyport.namespace', true), '')::BIGINT));
