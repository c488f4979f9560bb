-- +goose Up
-- Time-ordered identifiers (UUID version 7) whose time is the caller's, so that rows
-- made in one statement sort by the transaction's own clock.
-- +goose StatementBegin
CREATE FUNCTION drawbridge_uid(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                PLACING substring(int8send(floor(extract(epoch FROM at) * 1000)::bigint) FROM 3)
                FROM 1 FOR 6),
            52, 1), 53, 1), 'hex')::uuid
$$;
-- +goose StatementEnd

CREATE TABLE partners (
    partner_uid uuid PRIMARY KEY,
    name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    created_at  timestamptz NOT NULL
);

CREATE TABLE merchants (
    merchant_uid uuid PRIMARY KEY,
    partner_uid  uuid NOT NULL REFERENCES partners,
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    created_at   timestamptz NOT NULL,
    UNIQUE (merchant_uid, partner_uid)
);
CREATE INDEX merchants_partner ON merchants (partner_uid, created_at DESC);

CREATE TABLE clients (
    client_id            text PRIMARY KEY CHECK (length(client_id) BETWEEN 8 AND 100),
    partner_uid          uuid NOT NULL REFERENCES partners,
    is_group             boolean NOT NULL,
    secret_hash          bytea NOT NULL CHECK (length(secret_hash) = 32),
    previous_secret_hash bytea CHECK (length(previous_secret_hash) = 32),
    previous_valid_until timestamptz,
    rate_per_second      integer NOT NULL DEFAULT 50 CHECK (rate_per_second BETWEEN 1 AND 100000),
    rate_burst           integer NOT NULL DEFAULT 100 CHECK (rate_burst BETWEEN 1 AND 200000),
    last_used_at         timestamptz,
    revoked_at           timestamptz,
    created_at           timestamptz NOT NULL,
    UNIQUE (client_id, partner_uid),
    CHECK ((previous_secret_hash IS NULL) = (previous_valid_until IS NULL))
);
CREATE INDEX clients_partner ON clients (partner_uid, created_at DESC);

-- The partner stands in both keys, so that a client can never be given another partner's merchant.
CREATE TABLE client_merchants (
    client_id    text NOT NULL,
    merchant_uid uuid NOT NULL,
    partner_uid  uuid NOT NULL,
    PRIMARY KEY (client_id, merchant_uid),
    FOREIGN KEY (client_id, partner_uid) REFERENCES clients (client_id, partner_uid),
    FOREIGN KEY (merchant_uid, partner_uid) REFERENCES merchants (merchant_uid, partner_uid)
);
CREATE INDEX client_merchants_merchant ON client_merchants (merchant_uid);

-- Unlogged: losing it in a crash only refills the buckets.
CREATE UNLOGGED TABLE rate_buckets (
    client_id  text PRIMARY KEY REFERENCES clients ON DELETE CASCADE,
    tokens     double precision NOT NULL,
    taken      integer NOT NULL,
    updated_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
    client_id    text NOT NULL REFERENCES clients,
    merchant_uid uuid NOT NULL REFERENCES merchants,
    key          text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint  bytea NOT NULL CHECK (length(fingerprint) = 32),
    status       integer NOT NULL CHECK (status BETWEEN 200 AND 499),
    body         bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, merchant_uid, key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

-- +goose Down
DROP TABLE idempotency_keys, rate_buckets, client_merchants, clients, merchants, partners;
DROP FUNCTION drawbridge_uid;
