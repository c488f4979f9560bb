-- +goose Up
-- Which database this is. A process that finds another identity than its own database's works on
-- a copy that was restored from a backup, and holds everything that would be sent. The row is
-- written by the first process that starts, so that a database without one can be cloned.
CREATE TABLE installation (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    identity    text NOT NULL,
    recorded_at timestamptz NOT NULL,
    held_at     timestamptz,
    held_reason text,
    CHECK ((held_at IS NULL) = (held_reason IS NULL))
);

-- +goose Down
DROP TABLE installation;
