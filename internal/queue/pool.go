package queue

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"

	"drawbridge/internal/postgres"
)

// Connect prepares the connections of a client that works queues. They plan by indexes only: a
// queue is empty most of the time, and a plan made then reads the whole table for each job once
// there are thousands. Like the other connections, they are closed when their server turns out to
// refuse writes, and none is made before the database can be reached. What their statements show of
// the server, such as a full disk, is passed on to db.
func Connect(ctx context.Context, db *postgres.DB) (*pgxpool.Pool, error) {
	const era = "era"
	settings, err := pgxpool.ParseConfig(db.URL())
	if err != nil {
		return nil, err
	}
	settings.ConnConfig.Tracer = errorTracer{db}
	settings.BeforeConnect = func(ctx context.Context, _ *pgx.ConnConfig) error {
		return db.Reachable(ctx)
	}
	settings.AfterConnect = func(ctx context.Context, made *pgx.Conn) error {
		made.PgConn().CustomData()[era] = db.Era()
		_, err := made.Exec(ctx, postgres.PlanByIndex())
		return err
	}
	settings.PrepareConn = func(ctx context.Context, kept *pgx.Conn) (bool, error) {
		if kept.PgConn().CustomData()[era] != db.Era() {
			return false, nil
		}
		driver, fetches := ctx.Value(fetcher{}).(*Driver)
		if !fetches {
			return true, nil
		}
		return driver.trust(ctx, kept)
	}
	return pgxpool.NewWithConfig(ctx, settings)
}

// fetcher is the context key for the driver of a fetch.
type fetcher struct{}

// errFetchForbidden says that no jobs may be taken over a connection.
var errFetchForbidden = errors.New("no jobs may be taken")

// trust checks each connection once for whether jobs may be taken over it, and reports whether to
// keep it.
func (d *Driver) trust(ctx context.Context, kept *pgx.Conn) (keep bool, err error) {
	const trusted = "trusted by"
	if d.MayFetch == nil || kept.PgConn().CustomData()[trusted] == d {
		return true, nil
	}
	may, err := d.MayFetch(ctx, kept)
	if err != nil {
		return false, err
	}
	if !may {
		return true, errFetchForbidden
	}
	kept.PgConn().CustomData()[trusted] = d
	return true, nil
}

// errorTracer passes the errors of statements on to the database.
type errorTracer struct{ db *postgres.DB }

// TraceQueryStart implements pgx.QueryTracer.
func (errorTracer) TraceQueryStart(
	ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData,
) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (h errorTracer) TraceQueryEnd(_ context.Context, _ *pgx.Conn, ended pgx.TraceQueryEndData) {
	h.db.Observe(ended.Err)
}

// GetListener returns the library's listener, which also reconnects when its server turns out to
// refuse writes.
func (d *Driver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	return &listener{Listener: d.Driver.GetListener(params), db: d.db}
}

type listener struct {
	riverdriver.Listener

	db  *postgres.DB
	era int64
}

// Connect makes the connection.
func (l *listener) Connect(ctx context.Context) error {
	era := l.db.Era()
	err := l.Listener.Connect(ctx)
	if err == nil {
		l.era = era
	}
	return err
}

// errOldServer is why a connection is made again.
var errOldServer = errors.New("the server lets nobody write")

// Ping reports whether the connection is still good to listen on. The library calls it after every
// few seconds without a notification.
func (l *listener) Ping(ctx context.Context) error {
	if l.era != l.db.Era() {
		return errOldServer
	}
	return l.Listener.Ping(ctx)
}
