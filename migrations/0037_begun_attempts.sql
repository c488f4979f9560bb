-- +goose Up
-- The attempts whose request may have left and whose outcome is not written yet. When a process
-- dies, only these are unknown; what else it had taken was not begun.
CREATE TABLE begun_attempts (
    delivery_uid uuid PRIMARY KEY,
    created_at   timestamptz NOT NULL, -- the delivery's
    number       integer NOT NULL CHECK (number BETWEEN 1 AND 3),
    -- The run that began it: its job, and when the queue gave it the job.
    job_id       bigint NOT NULL,
    claimed_at   timestamptz NOT NULL,
    started_at   timestamptz NOT NULL
);

-- Whether the process notes what it begins: of an earlier release's nothing can be told.
ALTER TABLE processes ADD COLUMN notes_attempts boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE processes DROP COLUMN notes_attempts;
DROP TABLE begun_attempts;
