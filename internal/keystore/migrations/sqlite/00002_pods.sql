-- Which pod a key is for, so that its keys are found when it ends. regime is JSON, or empty.

-- +goose Up
ALTER TABLE keys ADD COLUMN pod_namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN regime TEXT NOT NULL DEFAULT '';

-- Those not revoked only: nobody looks for the others by their pod.
CREATE INDEX keys_by_pod ON keys (pod_namespace, session) WHERE kind = 'signed' AND revoked_at IS NULL;
CREATE INDEX keys_by_pod_uid ON keys (pod_uid) WHERE kind = 'signed' AND revoked_at IS NULL;
