-- +goose Up
LOCK TABLE users IN ACCESS EXCLUSIVE MODE;
LOCK TABLE audit_log IN SHARE MODE;

ALTER TABLE users
    ADD COLUMN must_change_password boolean NOT NULL DEFAULT false,
    ADD COLUMN password_changed_at  timestamptz,
    -- When a one-time password stops to work; null for one that was chosen.
    ADD COLUMN password_expires_at  timestamptz,
    -- Who the person is at the OpenID Connect provider.
    ADD COLUMN provider_issuer      text,
    ADD COLUMN provider_subject     text,
    ADD CONSTRAINT users_provider_whole
        CHECK ((provider_issuer IS NULL) = (provider_subject IS NULL));
CREATE UNIQUE INDEX users_provider ON users (provider_issuer, provider_subject);

-- What a person sees and ends of their sign-ins; the session library's own
-- table knows neither whose they are nor from where.
CREATE TABLE user_sessions (
    session_uid uuid PRIMARY KEY,
    user_uid    uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    method      text NOT NULL CHECK (method IN ('password', 'provider')),
    address     text NOT NULL,
    device      text NOT NULL CHECK (length(device) <= 400),
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    -- When the person last proved who they are.
    proved_at   timestamptz NOT NULL
);
CREATE INDEX user_sessions_user ON user_sessions (user_uid, seen_at DESC);
CREATE INDEX user_sessions_seen ON user_sessions (seen_at);

CREATE TABLE second_factors (
    user_uid      uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    secret_sealed text NOT NULL,
    -- Null until the first code has shown that the app has the secret.
    confirmed_at  timestamptz,
    -- The 30 s step of the last code: no code works twice.
    last_step     bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL
);

CREATE TABLE recovery_codes (
    user_uid  uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    code_hash bytea NOT NULL CHECK (length(code_hash) = 32),
    used_at   timestamptz,
    PRIMARY KEY (user_uid, code_hash)
);

CREATE TABLE sign_in_settings (
    only_row            boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    -- The roles whose users must have a second factor.
    second_factor_roles text[] NOT NULL DEFAULT '{}'
        CHECK (second_factor_roles <@ ARRAY['admin', 'operator', 'support'])
);
INSERT INTO sign_in_settings DEFAULT VALUES;

CREATE INDEX audit_log_at ON audit_log (at, entry_id);
CREATE INDEX audit_log_action ON audit_log (action text_pattern_ops, entry_id DESC);

-- +goose Down
DROP INDEX audit_log_action, audit_log_at;
DROP TABLE sign_in_settings, recovery_codes, second_factors, user_sessions;
ALTER TABLE users
    DROP COLUMN provider_subject,
    DROP COLUMN provider_issuer,
    DROP COLUMN password_expires_at,
    DROP COLUMN password_changed_at,
    DROP COLUMN must_change_password;
