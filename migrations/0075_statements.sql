-- +goose Up
-- What signs the daily statements. A key that was replaced keeps its public half for ever, so that
-- what it signed can be verified, and nothing of its private one.
CREATE TABLE statement_keys (
    key_id         text PRIMARY KEY,
    public_key     bytea NOT NULL CHECK (length(public_key) = 32),
    private_sealed text,
    valid_from     timestamptz NOT NULL,
    valid_until    timestamptz,
    CHECK ((private_sealed IS NULL) = (valid_until IS NOT NULL))
);
CREATE UNIQUE INDEX statement_keys_current ON statement_keys ((true)) WHERE valid_until IS NULL;

-- The business days that statements are made for, as the calendar was when each was due. They
-- follow one another without a gap.
CREATE TABLE statement_days (
    day         date PRIMARY KEY,
    begins      timestamptz NOT NULL UNIQUE,
    ends        timestamptz NOT NULL UNIQUE,
    -- When every merchant had its statement.
    finished_at timestamptz,
    CHECK (begins < ends)
);
CREATE INDEX statement_days_unfinished ON statement_days (day) WHERE finished_at IS NULL;

-- The statements, byte for byte as they are served and were signed. A correction is a row of its
-- own with the next version.
CREATE TABLE statements (
    merchant_uid   uuid NOT NULL REFERENCES merchants,
    day            date NOT NULL REFERENCES statement_days,
    version        integer NOT NULL CHECK (version >= 1),
    frozen_at      timestamptz NOT NULL,
    key_id         text NOT NULL REFERENCES statement_keys,
    json           bytea NOT NULL,
    json_signature bytea NOT NULL CHECK (length(json_signature) = 64),
    csv            bytea NOT NULL,
    csv_signature  bytea NOT NULL CHECK (length(csv_signature) = 64),
    -- A digest of what it says, apart from when and as which version.
    content        bytea NOT NULL CHECK (length(content) = 32),
    disbursements  integer NOT NULL,
    changes        integer NOT NULL,
    events         integer NOT NULL,
    gross          numeric(16,2) NOT NULL,
    fee            numeric(16,2) NOT NULL,
    net            numeric(16,2) NOT NULL,
    -- An event's delivery had not arrived.
    unresolved     boolean NOT NULL,
    PRIMARY KEY (merchant_uid, day, version)
);
CREATE INDEX statements_newest ON statements (day DESC, merchant_uid DESC, version DESC);
CREATE TRIGGER statements_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON statements
    FOR EACH STATEMENT EXECUTE FUNCTION drawbridge_refuse_change();

-- +goose Down
DROP TABLE statements, statement_days, statement_keys;
