package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
)

// recorder is a connector of lib/pq that writes down what goes over its
// connections while it is on, exactly as the driver gets it.
type recorder struct {
	driver.Connector

	mu    sync.Mutex
	on    bool
	steps []step
}

// action is what a step does.
type action int

const (
	begins action = iota
	queries
	executes
	commits
)

// step is one thing that went to the database.
type step struct {
	action action
	text   string
	args   []any
}

// record writes down what do sends.
func (r *recorder) record(do func() error) ([]step, error) {
	r.switchTo(true)
	err := do()
	r.switchTo(false)
	return r.steps, err
}

func (r *recorder) switchTo(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = on
}

func (r *recorder) note(s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on {
		r.steps = append(r.steps, s)
	}
}

// conn is what a connection of the driver is.
type conn interface { //nolint:interfacebloat // it is database/sql that asks for so much
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.NamedValueChecker
	driver.QueryerContext
}

// Connect opens a connection that is written down.
func (r *recorder) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := opened.(conn)
	if !ok {
		return nil, fmt.Errorf("the driver's %T cannot be recorded", opened)
	}
	return &recordedConn{conn: full, recorder: r}, nil
}

// recordedConn passes everything on to a connection of lib/pq.
type recordedConn struct {
	conn

	recorder *recorder
}

// BeginTx begins a transaction.
func (c *recordedConn) BeginTx(
	ctx context.Context, options driver.TxOptions,
) (driver.Tx, error) {
	c.recorder.note(step{action: begins})
	tx, err := c.conn.BeginTx(ctx, options)
	return &recordedTx{Tx: tx, recorder: c.recorder}, err
}

// QueryContext runs a query.
func (c *recordedConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	c.recorder.note(step{action: queries, text: text, args: values(args)})
	return c.conn.QueryContext(ctx, text, args)
}

// ExecContext runs a statement without rows.
func (c *recordedConn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Result, error) {
	c.recorder.note(step{action: executes, text: text, args: values(args)})
	return c.conn.ExecContext(ctx, text, args)
}

// recordedTx is a transaction whose commit is written down.
type recordedTx struct {
	driver.Tx

	recorder *recorder
}

// Commit commits.
func (t *recordedTx) Commit() error {
	t.recorder.note(step{action: commits})
	return t.Tx.Commit()
}

// values copies arguments, whose memory may be used again.
func values(args []driver.NamedValue) []any {
	copied := make([]any, 0, len(args))
	for _, arg := range args {
		if raw, ok := arg.Value.([]byte); ok {
			arg.Value = slices.Clone(raw)
		}
		copied = append(copied, arg.Value)
	}
	return copied
}
