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

// Connect opens a connection that is written down.
func (r *recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordedConn{Conn: conn, recorder: r}, nil
}

// recordedConn passes everything on to a connection of lib/pq.
type recordedConn struct {
	driver.Conn

	recorder *recorder
}

// inner returns the connection as what the driver says it is too.
func inner[T any](conn any) (T, error) {
	as, ok := conn.(T)
	if !ok {
		err := fmt.Errorf("the driver's %T is no %T", conn, &as)
		return as, err
	}
	return as, nil
}

// BeginTx begins a transaction.
func (c *recordedConn) BeginTx(
	ctx context.Context, options driver.TxOptions,
) (driver.Tx, error) {
	conn, err := inner[driver.ConnBeginTx](c.Conn)
	if err != nil {
		return nil, err
	}
	c.recorder.note(step{action: begins})
	tx, err := conn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return &recordedTx{Tx: tx, recorder: c.recorder}, nil
}

// QueryContext runs a query.
func (c *recordedConn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	conn, err := inner[driver.QueryerContext](c.Conn)
	if err != nil {
		return nil, err
	}
	c.recorder.note(step{action: queries, text: text, args: values(args)})
	return conn.QueryContext(ctx, text, args)
}

// ExecContext runs a statement without rows.
func (c *recordedConn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Result, error) {
	conn, err := inner[driver.ExecerContext](c.Conn)
	if err != nil {
		return nil, err
	}
	c.recorder.note(step{action: executes, text: text, args: values(args)})
	return conn.ExecContext(ctx, text, args)
}

// CheckNamedValue converts an argument as the driver wants it.
func (c *recordedConn) CheckNamedValue(value *driver.NamedValue) error {
	conn, err := inner[driver.NamedValueChecker](c.Conn)
	if err != nil {
		return err
	}
	return conn.CheckNamedValue(value)
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
