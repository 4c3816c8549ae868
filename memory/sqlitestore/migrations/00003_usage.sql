-- +goose Up

-- How much a namespace holds. It changes in the transaction that changes what is held, so that it is read and not counted.
CREATE TABLE usage (
    namespace INTEGER PRIMARY KEY REFERENCES namespaces (num),
    records   INTEGER NOT NULL, -- events, predicates, agents and all of their records
    bytes     INTEGER NOT NULL  -- of the texts in them
) STRICT;

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
) GROUP BY namespace;
