package postgres_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestACommitAfterTheEndOfItsContext: all statements have run when the context ends, which rolls
// the transaction back before it is committed.
func TestACommitAfterTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ended := func() error {
		ctx, cancel := context.WithCancel(t.Context())
		return db.InTx(ctx, func(tx *postgres.Tx) error {
			cancel()
			waittest.Until(t, "the transaction to be taken back", func() bool {
				_, err := tx.ExecContext(t.Context(), `SELECT 1`)
				return errors.Is(err, sql.ErrTxDone)
			})
			return nil
		})
	}
	if err := ended(); !postgres.IsCancelled(err) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	tries := 0
	err := postgres.Persist(t.Context(), "a test", func(context.Context) error {
		if tries++; tries == 2 {
			return nil
		}
		return ended()
	})
	if tries != 2 || err != nil {
		t.Errorf("%d tries, want another one; error %v", tries, err)
	}
}

// TestPersist fails a write twice with each kind of error.
func TestPersist(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		err   error
		tries int
	}{
		{"works", nil, 1},
		{"nobody listens", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 3},
		{"broken connection", driver.ErrBadConn, 3},
		{"cut answer", io.ErrUnexpectedEOF, 3},
		{"no answer", context.DeadlineExceeded, 3},
		{"starting up", &pq.Error{Code: "57P03"}, 3},
		{"ended by the server", &pq.Error{Code: "57P01"}, 3},
		{"took too long", &pq.Error{Code: "57014"}, 3},
		{"locked", &pq.Error{Code: "55P03"}, 3},
		{"full", &pq.Error{Code: "53100"}, 3},
		{"deadlock", &pq.Error{Code: "40P01"}, 3},
		{"not the primary", &pq.Error{Code: "25006"}, 3},
		{"no host can be written", unwritable(t), 3},
		{"a value it refuses", &pq.Error{Code: "22021"}, 1},
		{"no such table", &pq.Error{Code: "42P01"}, 3},
		{"no such database", &pq.Error{Code: "3D000"}, 1},
		{"a mistake", errors.New("wrong"), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // must not stop it
			tries := 0
			err := postgres.Persist(ctx, "a test", func(ctx context.Context) error {
				if ctx.Err() != nil {
					t.Errorf("a try begins with %v", ctx.Err())
				}
				if tries++; tries == 3 || test.err == nil {
					return nil
				}
				return fmt.Errorf("writing: %w", test.err)
			})
			if tries != test.tries || (err == nil) != (test.tries == 3 || test.err == nil) {
				t.Errorf("%d tries, want %d; error %v", tries, test.tries, err)
			}
		})
	}
}
