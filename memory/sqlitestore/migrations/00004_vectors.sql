-- +goose Up

-- What statements mean, as a model of embeddings sees it. Made from the events, and again when the model is another.
CREATE TABLE vectors (
    seq       INTEGER PRIMARY KEY REFERENCES events (seq),
    namespace INTEGER NOT NULL REFERENCES namespaces (num),
    model     TEXT NOT NULL,
    size      INTEGER NOT NULL, -- how many numbers
    numbers   BLOB NOT NULL     -- each a little-endian float of 32 bits; their length as a vector is 1
) STRICT;
CREATE INDEX vectors_of_namespace ON vectors (namespace, seq);
