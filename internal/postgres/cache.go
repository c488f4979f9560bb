package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
)

// cachedStatements bounds how many statements one connection keeps prepared: more than the program
// has on its hot paths, and a few megabytes of the server's memory.
const cachedStatements = 160

// statementLife is how long a prepared statement is kept. The server chooses between a generic plan
// and a custom plan for each use by comparing with the cost of the generic plan when that was last
// made; where tables have grown since, as in a new installation, it keeps making custom plans for
// good, and that costs more than most statements do.
const statementLife = 5 * time.Minute

// cachingConnector makes connections of lib/pq that prepare each statement with
// arguments on its first use and keep it. A later use is one round trip instead
// of two, and the server neither parses nor, once it has settled on a generic
// plan, plans it again.
//
// A connection keeps the most recently used statements. Statements without arguments take one round
// trip anyway and stay unprepared.
//
// When the schema changes under a kept statement, the server may refuse it. The statement is then
// forgotten on every connection and, outside a transaction, repeated at once; a transaction fails
// with it, and InTx runs it again.
type cachingConnector struct {
	driver.Connector

	limit int
	// life is how long a statement is kept.
	life time.Duration
	// generation increases when a kept statement proves stale; connections of an older generation
	// forget theirs.
	generation atomic.Int64
}

// Connect opens a connection with an empty cache.
func (c *cachingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(*boundConn)
	if !ok {
		return nil, errors.Join(
			errors.New("the connection lacks what the statement cache needs"), opened.Close())
	}
	return &cachedConn{
		boundConn: inner, connector: c, generation: c.generation.Load(),
		kept: make(map[string]*keptStatement),
	}, nil
}

// pqConn lists the methods of a connection of lib/pq.
type pqConn interface { //nolint:interfacebloat // one for each thing that database/sql asks for
	driver.Conn
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// pqStmt lists the methods of a prepared statement of lib/pq.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keptStatement is a prepared statement in the cache of its connection.
type keptStatement struct {
	text string
	stmt pqStmt
	// used is the value of the connection's uses when this statement was last used.
	used int64
	// until is when the statement is prepared again.
	until time.Time
}

// cachedConn is a connection with the statements that it keeps. Like every
// connection it is used by one goroutine at a time.
type cachedConn struct {
	*boundConn

	connector  *cachingConnector
	generation int64
	kept       map[string]*keptStatement
	// uses counts the uses of statements on this connection.
	uses int64
	// suspect reports that a cancellation is, or may still be, under way. It belongs to one statement
	// and must not hit the next.
	suspect bool
}

// IsValid reports whether the connection may be used again.
func (c *cachedConn) IsValid() bool { return !c.suspect && c.boundConn.IsValid() }

// QueryContext runs a query.
func (c *cachedConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	if len(args) == 0 {
		return c.boundConn.QueryContext(ctx, text, args)
	}
	var rows driver.Rows
	err := c.use(ctx, text, func(stmt pqStmt) (err error) {
		rows, err = stmt.QueryContext(ctx, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &cachedRows{Rows: rows, ctx: ctx, conn: c}, nil
}

// ExecContext runs a statement that returns no rows.
func (c *cachedConn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Result, error) {
	if len(args) == 0 {
		return c.boundConn.ExecContext(ctx, text, args)
	}
	var result driver.Result
	err := c.use(ctx, text, func(stmt pqStmt) (err error) {
		result, err = stmt.ExecContext(ctx, args)
		return err
	})
	c.doubt(ctx)
	return result, err
}

// use runs a kept statement, and once more if it proves stale.
func (c *cachedConn) use(ctx context.Context, text string, run func(pqStmt) error) error {
	for again := false; ; again = true {
		stmt, err := c.prepared(ctx, text)
		if err != nil {
			return err
		}
		if err = run(stmt); err != nil {
			c.doubt(ctx)
		}
		if !isStale(err) {
			return err
		}
		c.connector.generation.Add(1)
		if c.inTx || again {
			return err
		}
	}
}

// prepared returns the statement from the cache, preparing it first if it is new.
func (c *cachedConn) prepared(ctx context.Context, text string) (pqStmt, error) {
	if now := c.connector.generation.Load(); now != c.generation {
		if err := c.shrink(ctx, 0); err != nil {
			return nil, err
		}
		c.generation = now
	}
	c.uses++
	if found, ok := c.kept[text]; ok {
		if found.used = c.uses; time.Now().Before(found.until) {
			return found.stmt, nil
		}
		if err := c.forget(ctx, found); err != nil {
			return nil, err
		}
	}
	if err := c.shrink(ctx, c.connector.limit-1); err != nil {
		return nil, err
	}
	made, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	stmt, ok := made.(pqStmt)
	if !ok {
		return nil, errors.Join(
			errors.New("the driver's statement lacks what the statement cache needs"), made.Close())
	}
	c.kept[text] = &keptStatement{
		text: text, stmt: stmt, used: c.uses, until: time.Now().Add(c.connector.life),
	}
	return stmt, nil
}

// shrink forgets the least recently used statements until at most size are left.
func (c *cachedConn) shrink(ctx context.Context, size int) error {
	for len(c.kept) > size {
		var oldest *keptStatement
		for _, kept := range c.kept {
			if oldest == nil || kept.used < oldest.used {
				oldest = kept
			}
		}
		if err := c.forget(ctx, oldest); err != nil {
			return err
		}
	}
	return nil
}

// forget closes a kept statement and removes it from the cache.
func (c *cachedConn) forget(ctx context.Context, kept *keptStatement) error {
	defer c.watch(ctx)()
	delete(c.kept, kept.text)
	return kept.stmt.Close()
}

// doubt keeps the connection from further use if ctx has ended: lib/pq asks the
// server to cancel whatever runs on the connection, and that request may arrive
// only when something else runs there.
func (c *cachedConn) doubt(ctx context.Context) {
	if ctx.Err() != nil {
		c.suspect = true
	}
}

// cachedRows are the rows of a kept statement.
type cachedRows struct {
	driver.Rows

	ctx  context.Context //nolint:containedctx // the query's, which lives as long as its rows
	conn *cachedConn
}

// Close ends the query.
func (r *cachedRows) Close() error {
	err := r.Rows.Close()
	r.conn.doubt(r.ctx)
	return err
}

// isStale reports whether the server refused a kept statement because the columns of its result
// have changed or because it has been deallocated.
func isStale(err error) bool {
	pqErr, ok := errors.AsType[*pq.Error](err)
	if !ok {
		return false
	}
	return pqErr.Code == stateNoStatement ||
		pqErr.Code == stateUnsupported && strings.Contains(pqErr.Message, "cached plan")
}
