-- What one revocation of many keys ended: a notification has no room for them all.

-- +goose Up
CREATE INDEX keys_by_revocation ON keys (revoked_at) WHERE revoked_at IS NOT NULL;
