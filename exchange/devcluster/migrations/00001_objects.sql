-- One row an object, as JSON: a laptop has few, and their shape is the Go structs'.

-- +goose Up
CREATE TABLE objects (
    kind      TEXT NOT NULL CHECK (kind IN ('Pod', 'Sandbox', 'SandboxClaim')),
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    object    TEXT NOT NULL CHECK (json_valid(object)),
    PRIMARY KEY (kind, namespace, name)
) STRICT, WITHOUT ROWID;
