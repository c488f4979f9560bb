-- +goose Up
-- Certificates that were issued to the service itself, and its account at the authority, sealed.
CREATE TABLE tls_certificates (
    name        text PRIMARY KEY,
    data_sealed text NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- +goose Down
DROP TABLE tls_certificates;
