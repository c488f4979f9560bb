-- +goose Up
-- The console lists applications by status and by partner, newest first.
CREATE INDEX applications_status
    ON applications (status, created_at DESC, application_uid DESC);
CREATE INDEX applications_partner
    ON applications (partner_uid, created_at DESC, application_uid DESC);

-- +goose Down
DROP INDEX applications_partner, applications_status;
