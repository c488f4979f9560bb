package queue

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"drawbridge/internal/postgres"
)

// Connect prepares the connections of a client that works queues. They plan by indexes only:
// a queue is empty most of the time, and a plan that was made then reads the whole table for
// each job once there are thousands. Those to a server that turned out to let nobody write are
// given up, as the database's others are, and none is made before the database can be reached.
func Connect(ctx context.Context, db *postgres.DB) (*pgxpool.Pool, error) {
	const era = "era"
	settings, err := pgxpool.ParseConfig(db.URL())
	if err != nil {
		return nil, err
	}
	settings.BeforeConnect = func(ctx context.Context, _ *pgx.ConnConfig) error {
		return db.Reachable(ctx)
	}
	settings.AfterConnect = func(ctx context.Context, made *pgx.Conn) error {
		made.PgConn().CustomData()[era] = db.Era()
		_, err := made.Exec(ctx, postgres.PlanByIndex())
		return err
	}
	settings.PrepareConn = func(_ context.Context, kept *pgx.Conn) (bool, error) {
		return kept.PgConn().CustomData()[era] == db.Era(), nil
	}
	return pgxpool.NewWithConfig(ctx, settings)
}
