-- +goose Up

-- The stems of every belief's words, in the order in which beliefs of equal rank are answered (sqlstore/words.go).
DROP TABLE words;
CREATE TABLE words (
    namespace   INTEGER NOT NULL,
    stem        TEXT NOT NULL,
    note        INTEGER NOT NULL,
    observed_at TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (namespace, stem, note, observed_at, seq)
) STRICT, WITHOUT ROWID;

-- How many beliefs hold a stem; under the empty one, how many there are.
CREATE TABLE word_counts (
    namespace INTEGER NOT NULL,
    stem      TEXT NOT NULL,
    beliefs   INTEGER NOT NULL,
    PRIMARY KEY (namespace, stem)
) STRICT, WITHOUT ROWID;

-- What holds none of the words is answered in order of time.
DROP INDEX beliefs_in_time;
CREATE INDEX beliefs_in_time ON beliefs (namespace, note, observed_at, seq);
CREATE INDEX beliefs_of_subject_in_time ON beliefs (namespace, subject, note, observed_at, seq);

-- The beliefs that are there are indexed when the memory is opened, since their words are told apart in Go.
ALTER TABLE namespaces ADD COLUMN indexed INTEGER NOT NULL DEFAULT 1;
UPDATE namespaces SET indexed = 0;
