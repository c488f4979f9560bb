package pgtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Query is a query as it was sent to the server.
type Query struct {
	Text string
	Args []any
}

// Recorder records the queries of a pool.
type Recorder struct {
	driver.Connector

	mu      sync.Mutex
	queries []Query
}

// Record replaces the pool of db by one that records its queries, until the test ends. Nothing may
// use db meanwhile.
func Record(t testing.TB, db *postgres.DB) *Recorder {
	t.Helper()
	connector, err := pq.NewConnector(db.URL())
	if err != nil {
		t.Fatalf("reading the database URL: %v", err)
	}
	recorder := &Recorder{Connector: connector}
	recorded, before := sqlx.NewDb(sql.OpenDB(recorder), "postgres"), db.DB
	db.DB = recorded
	t.Cleanup(func() {
		db.DB = before
		if err := recorded.Close(); err != nil {
			t.Errorf("closing the recorded pool: %v", err)
		}
	})
	return recorder
}

// Take returns the queries since its last call.
func (r *Recorder) Take() []Query {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.queries
	r.queries = nil
	return taken
}

// Connect opens a connection that records its queries.
func (r *Recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(recordable)
	if !ok {
		return nil, fmt.Errorf("the driver's %T cannot be recorded", conn)
	}
	return &recordedConn{recordable: full, recorder: r}, nil
}

// recordable lists the methods of the driver's connections.
type recordable interface { //nolint:interfacebloat // it is database/sql that asks for so much
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.NamedValueChecker
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type recordedConn struct {
	recordable

	recorder *Recorder
}

// QueryContext records a query and runs it.
func (c *recordedConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	query := Query{Text: text}
	for _, arg := range args {
		if raw, ok := arg.Value.([]byte); ok {
			arg.Value = slices.Clone(raw) // its memory may be used again
		}
		query.Args = append(query.Args, arg.Value)
	}
	c.recorder.mu.Lock()
	c.recorder.queries = append(c.recorder.queries, query)
	c.recorder.mu.Unlock()
	return c.recordable.QueryContext(ctx, text, args)
}
