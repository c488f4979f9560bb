package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"
)

// boundConnector makes connections of lib/pq on which no statement outlasts its context by more
// than grace. The driver alone asks the server to end a statement and then waits for it, for ever
// if the server hangs or the network is silent.
type boundConnector struct {
	// modes are the ways to connect, tried in order: see newBoundConnector.
	modes []*pq.Connector
	// timeout bounds the making of a connection; grace is how long a statement may keep its connection
	// after its context has ended.
	timeout, grace time.Duration
	health         *health
	// pooled is true if a pooler may refuse sessionDefaults.
	pooled bool
}

// newBoundConnector returns a connector for the data source.
//
// It splits sslmode=prefer into two modes that the driver handles well: with TLS, then without.
// Left to choose by itself, the driver leaks an open socket for each connection to a server without
// TLS, which the server waits for when it shuts down, and it cannot cancel statements there.
func newBoundConnector(dsn string, chosen options) (*boundConnector, error) {
	settings, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, err
	}
	made := &boundConnector{
		timeout: chosen.timeout, grace: chosen.timeout / graceShare, health: chosen.health,
		pooled: chosen.unprepared,
	}
	modes := []pq.SSLMode{settings.SSLMode}
	if settings.SSLMode == pq.SSLModePrefer {
		modes = []pq.SSLMode{pq.SSLModeRequire, pq.SSLModeDisable}
	}
	for _, mode := range modes {
		variant := settings.Clone()
		variant.SSLMode = mode
		connector, err := pq.NewConnectorConfig(variant)
		if err != nil {
			return nil, err
		}
		connector.Dialer(&dialer{grace: made.grace})
		made.modes = append(made.modes, connector)
	}
	return made, nil
}

// Driver returns the driver of lib/pq.
func (c *boundConnector) Driver() driver.Driver { return c.modes[0].Driver() }

// Connect opens a connection, when the breaker allows it.
func (c *boundConnector) Connect(ctx context.Context) (driver.Conn, error) {
	defer Waiting(ctx)()
	var made driver.Conn
	err := c.health.breaker.connect(ctx, func() error {
		var err error
		made, err = c.connect(ctx)
		return err
	})
	if err != nil {
		return nil, &ConnectionError{err}
	}
	return made, nil
}

func (c *boundConnector) connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	era := c.health.Era()
	making := &opening{ctx: ctx}
	named := context.WithValue(ctx, openingKey{}, making)
	made, err := c.modes[0].Connect(named)
	for _, next := range c.modes[1:] {
		if _, refused := errors.AsType[*pq.Error](err); err == nil || refused ||
			making.socket == nil || ctx.Err() != nil {
			break
		}
		made, err = next.Connect(named)
	}
	making.settle()
	if err != nil {
		return nil, err
	}
	inner, ok := made.(pqConn)
	if !ok {
		return nil, errors.Join(
			errors.New("the driver's connection lacks what this package needs"), made.Close())
	}
	conn := &boundConn{
		pqConn: inner, socket: making.socket, grace: c.grace, health: c.health, era: era,
	}
	pq.SetNoticeHandler(made, func(notice *pq.Error) {
		conn.unreplicated = conn.unreplicated || notice.Routine == "SyncRepWaitForLSN"
	})
	if c.pooled {
		// The one of sessionDefaults without which publishing takes seconds. It does not harm the
		// next user of the connection.
		if _, err := conn.ExecContext(ctx, `SET jit = off`, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// errUnreplicated is a commit that is on its server but perhaps not on a synchronous standby: when
// asked to cancel, also because a context ended, a server stops waiting for the standby and reports
// success with a warning. If that server is lost, so is the commit.
var errUnreplicated = errors.New(
	"the server has committed, and does not know whether its standby has")

// boundConn is a connection whose statements end with their contexts.
type boundConn struct {
	pqConn

	socket net.Conn
	grace  time.Duration
	health *health
	// era is the server's era in which the connection was made.
	era int64
	// unreplicated reports that the server has just warned of such a commit: see errUnreplicated.
	unreplicated bool
	// inTx reports that a transaction is open, in which nothing can be repeated.
	inTx bool
}

// IsValid reports whether the connection leads to a server that still accepts writes.
func (c *boundConn) IsValid() bool { return c.era == c.health.Era() && c.pqConn.IsValid() }

// ResetSession prepares the connection for its next use, unless it is no longer valid.
func (c *boundConn) ResetSession(ctx context.Context) error {
	if !c.IsValid() {
		return driver.ErrBadConn
	}
	return c.pqConn.ResetSession(ctx)
}

// connError marks an error of the driver as a connection error where it is one, and passes it to
// health. Success with a warning that only this server has the commit becomes errUnreplicated.
func (c *boundConn) connError(err error) error {
	alone := c.unreplicated
	if c.unreplicated = false; alone && err == nil {
		return &ConnectionError{errUnreplicated}
	}
	c.health.observe(err)
	return connectionError(err)
}

// watch makes whatever runs on the connection fail shortly after ctx has ended, until the function
// that it returns is called, and counts the time as waiting for the database.
func (c *boundConn) watch(ctx context.Context) func() {
	counted := Waiting(ctx)
	var mu sync.Mutex
	var over, late bool
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			late = true
			_ = c.socket.SetDeadline(time.Now().Add(c.grace)) // closed already if this fails
		}
	})
	return func() {
		defer counted()
		if stop() {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		over = true
		if late {
			_ = c.socket.SetDeadline(time.Time{}) // likewise
		}
	}
}

// errOptions refuses transaction options, which no caller uses.
var errOptions = errors.New("a transaction has no options here: SET TRANSACTION sets them")

// BeginTx begins a transaction with a plain BEGIN, which leaves it to the server whether it may
// write: the driver would send READ WRITE, which is granted even where writing has been turned off.
func (c *boundConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return nil, errOptions
	}
	defer c.watch(ctx)()
	if _, err := c.pqConn.ExecContext(ctx, "BEGIN", nil); err != nil {
		// BEGIN only fails for the state of the server, such as one that allows no writes.
		c.health.observe(err)
		return nil, &ConnectionError{err}
	}
	c.inTx = true
	return &boundTx{c, ctx}, nil
}

// ExecContext runs a statement that returns no rows.
func (c *boundConn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Result, error) {
	defer c.watch(ctx)()
	result, err := c.pqConn.ExecContext(ctx, text, args)
	return result, c.connError(err)
}

// QueryContext runs a query.
func (c *boundConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	return c.query(ctx, func() (driver.Rows, error) {
		return c.pqConn.QueryContext(ctx, text, args)
	})
}

// query keeps watch on a query until its rows are closed.
func (c *boundConn) query(
	ctx context.Context, run func() (driver.Rows, error),
) (driver.Rows, error) {
	over := c.watch(ctx)
	rows, err := run()
	if err != nil {
		over()
		return nil, c.connError(err)
	}
	return &boundRows{rows, c, over}, nil
}

// PrepareContext prepares a statement.
func (c *boundConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	defer c.watch(ctx)()
	made, err := c.pqConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, c.connError(err)
	}
	stmt, ok := made.(pqStmt)
	if !ok {
		return nil, errors.Join(
			errors.New("the driver's statement lacks what this package needs"), made.Close())
	}
	return &boundStmt{stmt, c}, nil
}

// Ping checks that the server responds.
func (c *boundConn) Ping(ctx context.Context) error {
	defer c.watch(ctx)()
	return c.connError(c.pqConn.Ping(ctx))
}

// Close ends the connection and notifies the server if it responds.
func (c *boundConn) Close() error {
	_ = c.socket.SetDeadline(time.Now().Add(c.grace)) // closed already if this fails
	return c.pqConn.Close()
}

// boundTx is a transaction of a boundConn.
type boundTx struct {
	conn *boundConn
	ctx  context.Context //nolint:containedctx // the transaction's, which lives as long
}

// Commit commits the transaction. Error: pq.ErrInFailedTransaction if a statement has failed in it.
// The driver's own Commit would ask the server to cancel a commit that outlasts the context, which
// may be waiting for a standby.
func (t *boundTx) Commit() error {
	t.conn.inTx = false
	defer t.conn.watch(t.ctx)()
	rows, err := t.conn.pqConn.QueryContext(t.ctx, "COMMIT", nil)
	if err != nil {
		return t.conn.connError(err)
	}
	ended, ok := rows.(interface{ Tag() string })
	if err = rows.Close(); err == nil && (!ok || ended.Tag() != "COMMIT") {
		err = pq.ErrInFailedTransaction
	}
	return t.conn.connError(err)
}

// Rollback rolls the transaction back, also after the end of its context.
func (t *boundTx) Rollback() error {
	t.conn.inTx = false
	defer t.conn.watch(t.ctx)()
	_, err := t.conn.pqConn.ExecContext(context.WithoutCancel(t.ctx), "ROLLBACK", nil)
	return t.conn.connError(err)
}

// boundStmt is a prepared statement of a boundConn.
type boundStmt struct {
	pqStmt

	conn *boundConn
}

// ExecContext runs the statement.
func (s *boundStmt) ExecContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Result, error) {
	defer s.conn.watch(ctx)()
	result, err := s.pqStmt.ExecContext(ctx, args)
	return result, s.conn.connError(err)
}

// QueryContext runs the statement for its rows.
func (s *boundStmt) QueryContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Rows, error) {
	return s.conn.query(ctx, func() (driver.Rows, error) { return s.pqStmt.QueryContext(ctx, args) })
}

// boundRows are the rows of a query on a boundConn.
type boundRows struct {
	driver.Rows

	conn *boundConn
	over func()
}

// Next reads a row.
func (r *boundRows) Next(row []driver.Value) error {
	err := r.Rows.Next(row)
	if err != io.EOF { //nolint:errorlint // the end of the rows, by the driver's contract
		return r.conn.connError(err)
	}
	return cmp.Or(r.conn.connError(nil), err)
}

// Close ends the query.
func (r *boundRows) Close() error {
	defer r.over()
	return r.conn.connError(r.Rows.Close())
}
