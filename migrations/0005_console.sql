-- +goose Up
CREATE TABLE users (
    user_uid      uuid PRIMARY KEY,
    email         text NOT NULL CHECK (length(email) BETWEEN 3 AND 254),
    name          text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    role          text NOT NULL CHECK (role IN ('admin', 'operator', 'support')),
    password_hash text NOT NULL,
    demo_password boolean NOT NULL DEFAULT false,
    disabled_at   timestamptz,
    last_sign_in_at timestamptz,
    created_at    timestamptz NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

-- The shape that the session library expects.
CREATE TABLE sessions (
    token  text PRIMARY KEY,
    data   bytea NOT NULL,
    expiry timestamptz NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expiry);

CREATE TABLE sign_in_failures (
    failure_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account    text NOT NULL,
    address    text NOT NULL,
    failed_at  timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_account ON sign_in_failures (account, failed_at);
CREATE INDEX sign_in_failures_address ON sign_in_failures (address, failed_at);

CREATE TABLE audit_log (
    entry_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL,
    actor        text NOT NULL,
    address      text NOT NULL,
    action       text NOT NULL,
    subject_kind text NOT NULL,
    subject      text NOT NULL,
    reason       text NOT NULL DEFAULT '',
    before       jsonb,
    after        jsonb
);
CREATE INDEX audit_log_subject ON audit_log (subject_kind, subject, entry_id DESC);
CREATE INDEX audit_log_actor ON audit_log (actor, entry_id DESC);

-- +goose StatementBegin
CREATE FUNCTION drawbridge_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION drawbridge_refuse_change();

-- +goose Down
DROP TABLE audit_log, sign_in_failures, sessions, users;
DROP FUNCTION drawbridge_refuse_change;
