-- +goose Up
-- E-mails that were still queued when the time of their text was over; it goes once they are not.
CREATE TABLE retention_email_leftovers (
    email_uid uuid PRIMARY KEY
);

-- Those that were passed by so far.
INSERT INTO retention_email_leftovers (email_uid)
SELECT e.email_uid
  FROM retention_progress p
  JOIN emails e ON e.created_at < p.done_until
 WHERE p.matter = 'emails'
   AND e.content_removed_at IS NULL
   AND (e.application_uid IS NULL OR e.application_uid NOT IN (
           SELECT application_uid FROM application_holds WHERE released_at IS NULL));

-- +goose Down
DROP TABLE retention_email_leftovers;
