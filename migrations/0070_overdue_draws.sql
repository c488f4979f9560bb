-- +goose Up
-- After how many business hours in one state a draw of the product is overdue.
ALTER TABLE products
    ADD COLUMN overdue_hours integer NOT NULL DEFAULT 16 CHECK (overdue_hours BETWEEN 1 AND 400);

-- +goose Down
ALTER TABLE products DROP COLUMN overdue_hours;
