-- +goose Up
-- What a client stored on a day in UTC, for the bound on it.
CREATE TABLE client_uploads (
    client_id text NOT NULL,
    day       date NOT NULL,
    files     integer NOT NULL,
    bytes     bigint NOT NULL,
    PRIMARY KEY (client_id, day)
);

-- +goose Down
DROP TABLE client_uploads;
