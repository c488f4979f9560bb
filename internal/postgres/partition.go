package postgres

import (
	"context"
	"fmt"
)

// partitionsAhead is for how many months beyond the current one partitions
// exist: enough that a job which fails for weeks harms nobody.
const partitionsAhead = 3

// MakePartitions makes the monthly partitions of events, deliveries and
// attempts from the current month on and returns how many tables it made.
func (db *DB) MakePartitions(ctx context.Context) (int, error) {
	var made int
	now := db.Now().UTC()
	err := db.GetContext(ctx, &made,
		`SELECT drawbridge_make_partitions($1, $1, $2)`, now, partitionsAhead)
	if err != nil {
		return 0, fmt.Errorf("making partitions: %w", err)
	}
	return made, nil
}
