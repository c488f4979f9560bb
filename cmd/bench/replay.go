package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// script is a recorded operation that can be replayed for other applications: only its SQL
// statements, without the program that made them.
type script struct {
	db    *sql.DB
	steps []step
	// subject is the application of the recording.
	subject    string
	recordedAt time.Time
	notify     throttle
	// fresh are the identifiers that the operation created; each replay replaces them.
	fresh []string
	// renamed says for each argument of each step whether it contains one of them.
	renamed [][]bool
}

// uuidPattern finds identifiers in arguments.
var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// cooldown is the setting of the program's inserting client: the least time between two
// notifications of a queue.
const cooldown = 5 * time.Millisecond

// newScript makes a script of the steps that were recorded when the operation ran for the
// subject. Identifiers among known are not replaced.
func newScript(db *sql.DB, steps []step, subject uuid.UUID, known ...uuid.UUID) (*script, error) {
	if len(steps) == 0 {
		return nil, errors.New("the operation sent nothing to the database")
	}
	s := &script{
		db: db, steps: steps, subject: subject.String(), recordedAt: time.Now(),
		notify: throttle{every: cooldown},
	}
	kept := []string{s.subject}
	for _, uid := range known {
		kept = append(kept, uid.String())
	}
	for _, step := range steps {
		marks := make([]bool, len(step.args))
		for i, arg := range step.args {
			for _, uid := range uuidPattern.FindAllString(text(arg), -1) {
				if !slices.Contains(kept, uid) && !slices.Contains(s.fresh, uid) {
					s.fresh = append(s.fresh, uid)
				}
				marks[i] = marks[i] || uid == s.subject || slices.Contains(s.fresh, uid)
			}
		}
		s.renamed = append(s.renamed, marks)
	}
	return s, nil
}

// text is the text of an argument, empty if it is not text.
func text(arg any) string {
	switch value := arg.(type) {
	case string:
		return value
	case []byte:
		return string(value)
	}
	return ""
}

// replay runs the statements for another application: in one transaction if the operation used
// one.
func (s *script) replay(ctx context.Context, target uuid.UUID) error {
	pairs := []string{s.subject, target.String()}
	for _, uid := range s.fresh {
		pairs = append(pairs, uid, uuid.Must(uuid.NewV7()).String())
	}
	cast := substitution{names: strings.NewReplacer(pairs...), later: time.Since(s.recordedAt)}
	var tx *sql.Tx
	var err error
	for at, step := range s.steps {
		switch step.action {
		case begins:
			tx, err = s.db.BeginTx(ctx, nil)
		case commits:
			return tx.Commit()
		case queries, executes:
			err = s.send(ctx, tx, at, cast)
		}
		if err != nil {
			break
		}
	}
	if tx == nil {
		return err
	}
	if err == nil {
		err = errors.New("the recorded operation did not commit")
	}
	return errors.Join(err, tx.Rollback())
}

// substitution has the replacements for one replay.
type substitution struct {
	names *strings.Replacer
	// later is how long ago the recording was made.
	later time.Duration
}

// send sends one statement and reads its rows to the end. Without a transaction it uses any
// connection.
func (s *script) send(ctx context.Context, tx *sql.Tx, at int, cast substitution) error {
	step := s.steps[at]
	if strings.Contains(step.text, "pg_notify") && !s.notify.due(time.Now()) {
		return nil
	}
	args := make([]any, len(step.args))
	for i, arg := range step.args {
		args[i] = cast.apply(arg, s.renamed[at][i])
	}
	query, exec := s.db.QueryContext, s.db.ExecContext
	if tx != nil {
		query, exec = tx.QueryContext, tx.ExecContext
	}
	if step.action == executes {
		_, err := exec(ctx, step.text, args...)
		return err
	}
	rows, err := query(ctx, step.text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// apply returns an argument for this replay, with identifiers replaced and times moved forward.
func (c substitution) apply(arg any, renamed bool) any {
	switch value := arg.(type) {
	case time.Time:
		return value.Add(c.later)
	case string:
		if renamed {
			return c.names.Replace(value)
		}
	case []byte:
		if renamed {
			return []byte(c.names.Replace(string(value)))
		}
	}
	return arg
}

// throttle limits how often something happens, as the inserting client limits its
// notifications.
type throttle struct {
	every time.Duration
	mu    sync.Mutex
	last  time.Time
}

func (p *throttle) due(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < p.every {
		return false
	}
	p.last = now
	return true
}

// recorder is a connector of lib/pq that records the statements on its connections while it is
// on, exactly as the driver gets them.
type recorder struct {
	driver.Connector

	on    atomic.Bool
	mu    sync.Mutex
	steps []step
}

// action is the kind of a step.
type action int

const (
	begins action = iota
	queries
	executes
	commits
)

// step is one recorded call to the database.
type step struct {
	action action
	text   string
	args   []any
}

// record runs do and returns the steps that it made.
func (r *recorder) record(do func() error) ([]step, error) {
	r.on.Store(true)
	err := do()
	r.on.Store(false)
	return r.steps, err
}

func (r *recorder) note(s step) {
	if r.on.Load() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.steps = append(r.steps, s)
	}
}

// conn has the interfaces that a connection of the driver implements.
type conn interface { //nolint:interfacebloat // it is database/sql that asks for so much
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.NamedValueChecker
	driver.QueryerContext
}

// Connect opens a connection whose statements are recorded.
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

// recordedConn records calls and passes them on to a connection of lib/pq.
type recordedConn struct {
	conn

	recorder *recorder
}

// BeginTx begins a transaction.
func (c *recordedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
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

// recordedTx is a transaction whose commit is recorded.
type recordedTx struct {
	driver.Tx

	recorder *recorder
}

// Commit commits.
func (t *recordedTx) Commit() error {
	t.recorder.note(step{action: commits})
	return t.Tx.Commit()
}

// values copies arguments, since the driver's caller may reuse their memory.
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
