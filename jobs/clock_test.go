package jobs_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/jobs"
)

// TestJobsAreMadeByTheDatabasesClock: a job inserted by a machine whose clock is ahead
// would wait for as long as it is ahead.
func TestJobsAreMadeByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	database := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	db.Now = func() time.Time { return database }
	config := &river.Config{}
	jobs.InsertByClock(config, db)
	client, err := river.NewClient(riverdatabasesql.New(db.DB.DB), config)
	if err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
		_, err := client.InsertManyFastTx(t.Context(), tx.Tx.Tx, []river.InsertManyParams{
			{Args: delivery.Args{DeliveryUID: uuid.New(), Number: 1}},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		State       string    `db:"state"`
		CreatedAt   time.Time `db:"created_at"`
		ScheduledAt time.Time `db:"scheduled_at"`
	}
	err = db.GetContext(t.Context(), &made, `SELECT state, created_at, scheduled_at FROM river_job`)
	if err != nil || made.State != "available" || !made.CreatedAt.Equal(database) ||
		!made.ScheduledAt.Equal(database) {
		t.Errorf("at %s by the database's clock %+v was made (%v)", database, made, err)
	}
}
