-- +goose Up
LOCK TABLE idempotency_keys, merchants, clients IN ACCESS EXCLUSIVE MODE;

-- Clients of the lender's own systems: without a partner, with a name and what they may do.
ALTER TABLE clients
    ALTER COLUMN partner_uid DROP NOT NULL,
    ADD COLUMN name     text CHECK (length(name) BETWEEN 1 AND 100),
    ADD COLUMN scopes   text[] CHECK (cardinality(scopes) > 0 AND scopes <@ ARRAY['read',
        'applications', 'documents', 'tasks', 'funding']),
    -- Where their calls may come from; empty for anywhere.
    ADD COLUMN networks cidr[] NOT NULL DEFAULT '{}',
    ADD CONSTRAINT clients_of_somebody CHECK ((partner_uid IS NULL) = (scopes IS NOT NULL)
        AND (scopes IS NULL) = (name IS NULL));
CREATE INDEX clients_lender ON clients (created_at DESC) WHERE partner_uid IS NULL;
-- The nil merchant stands for none: a call of the lender's systems is for no merchant.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_merchant_uid_fkey;

-- +goose Down
LOCK TABLE idempotency_keys, merchants, clients IN ACCESS EXCLUSIVE MODE;
DELETE FROM idempotency_keys
 WHERE merchant_uid = '00000000-0000-0000-0000-000000000000';
ALTER TABLE idempotency_keys
    ADD CONSTRAINT idempotency_keys_merchant_uid_fkey FOREIGN KEY (merchant_uid)
        REFERENCES merchants;
DELETE FROM clients WHERE partner_uid IS NULL;
DROP INDEX clients_lender;
ALTER TABLE clients
    DROP CONSTRAINT clients_of_somebody,
    DROP COLUMN name,
    DROP COLUMN scopes,
    DROP COLUMN networks,
    ALTER COLUMN partner_uid SET NOT NULL;
