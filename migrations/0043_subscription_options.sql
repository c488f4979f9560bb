-- +goose Up
LOCK TABLE subscriptions, subscription_versions IN ACCESS EXCLUSIVE MODE;

ALTER TABLE subscriptions
    -- What people call it, '' for nothing.
    ADD COLUMN name     text NOT NULL DEFAULT '' CHECK (length(name) <= 100),
    -- Its own delays before attempts 2 and 3, such as '5m,2h'; '' for those of all.
    ADD COLUMN retry    text NOT NULL DEFAULT '',
    -- Whether requests carry the signature of Standard Webhooks as well.
    ADD COLUMN standard boolean NOT NULL DEFAULT false CHECK (NOT standard OR auth = 'hmac');
-- NULL: made by a release that did not keep them.
ALTER TABLE subscription_versions
    ADD COLUMN name     text,
    ADD COLUMN retry    text,
    ADD COLUMN standard boolean;

-- +goose Down
ALTER TABLE subscription_versions DROP COLUMN name, DROP COLUMN retry, DROP COLUMN standard;
ALTER TABLE subscriptions DROP COLUMN name, DROP COLUMN retry, DROP COLUMN standard;
