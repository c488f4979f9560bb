-- +goose Up
LOCK TABLE partners, merchants IN SHARE MODE;

-- What a picker offers before anybody types.
CREATE INDEX merchants_named ON merchants (name, merchant_uid);
CREATE INDEX partners_named ON partners (name, partner_uid);

-- +goose Down
DROP INDEX merchants_named, partners_named;
