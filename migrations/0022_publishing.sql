-- +goose Up
LOCK TABLE applications, events, deliveries, subscriptions, partners, merchants IN ACCESS EXCLUSIVE MODE;

-- An event takes its partner and merchant from the application that the same statement locks, and
-- a delivery its subscription from the row that it was made for; none of these rows is ever
-- removed. The keys made every event look all of them up and lock them for the others that
-- mention them, which at many events a second is most of what those rows see.
ALTER TABLE events
    DROP CONSTRAINT events_application_uid_fkey,
    DROP CONSTRAINT events_merchant_uid_fkey,
    DROP CONSTRAINT events_partner_uid_fkey;
ALTER TABLE deliveries DROP CONSTRAINT deliveries_subscription_uid_fkey;

-- Every event moves the time of its application on, in place where the page has room.
ALTER TABLE applications SET (fillfactor = 85);

-- +goose Down
ALTER TABLE applications RESET (fillfactor);
ALTER TABLE deliveries ADD CONSTRAINT deliveries_subscription_uid_fkey
    FOREIGN KEY (subscription_uid) REFERENCES subscriptions;
ALTER TABLE events
    ADD CONSTRAINT events_application_uid_fkey FOREIGN KEY (application_uid) REFERENCES applications,
    ADD CONSTRAINT events_merchant_uid_fkey FOREIGN KEY (merchant_uid) REFERENCES merchants,
    ADD CONSTRAINT events_partner_uid_fkey FOREIGN KEY (partner_uid) REFERENCES partners;
