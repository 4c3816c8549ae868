-- +goose Up

-- Without it the events of one subject were looked for among all of the namespace's, in order of time.
CREATE INDEX events_of_subject ON events (namespace, subject, observed_at, seq);
