package app

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/lib/pq"
	"github.com/riverqueue/river"

	"drawbridge/internal/queue"
	"drawbridge/internal/waittest"
)

// TestAStartOutlastsAFailOver: a database that refuses writes for a moment does not end a process
// that has begun to serve; an error that time does not fix does.
func TestAStartOutlastsAFailOver(t *testing.T) {
	t.Parallel()
	tries := 0
	err := patiently(t.Context(), func(context.Context) error {
		if tries++; tries == 1 {
			return &pq.Error{Code: "25006"} // read_only_sql_transaction
		}
		return nil
	})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries it ended with %v", tries, err)
	}
	wrong := errors.New("the database is of another environment")
	err = patiently(t.Context(), func(context.Context) error { return wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("it ended with %v, want %v", err, wrong)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	err = patiently(ended, func(context.Context) error { return &pq.Error{Code: "25006"} })
	if err != nil {
		t.Errorf("while the process stops it ended with %v", err)
	}
}

type nothing struct{}

func (nothing) Kind() string { return "nothing" }

// TestAStartIsGivenUp: the database accepts connections but sends nothing, and the process is told
// to stop while its queues start.
func TestAStartIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	pool, err := pgxpool.New(t.Context(), "postgres://"+silent.Addr().String()+"/x?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[nothing]) error {
		return nil
	}))
	client, err := river.NewClient(queue.NewDriver(pool, nil), &river.Config{
		Queues: map[string]river.QueueConfig{"x": {MaxWorkers: 1}}, Workers: workers,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- startQueue(ctx, client) }()
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	end()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the queues have started")
		}
	case <-time.After(waittest.Patience):
		t.Error("the start goes on")
	}
}
