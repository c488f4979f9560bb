package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// health is what the results of statements show of the server as such: whether it accepts writes.
// The pools of a process share one.
type health struct {
	// era increases when the server turns out to refuse writes: it is a standby, or was made one.
	// Connections of an earlier era are closed, and new ones are made to whichever of the hosts
	// accepts writes.
	era atomic.Int64
	// moved is when era last increased, in Unix nanoseconds.
	moved atomic.Int64
	// standby reports that the server is a standby on purpose, so that refused writes mean nothing.
	standby bool
	// full reports that the last write failed because the server's disk was full.
	full    atomic.Bool
	breaker breaker
}

// Era counts how often the server turned out to refuse writes.
func (h *health) Era() int64 { return h.era.Load() }

// move begins another era, at most once a second: a server that refuses writes must not be flooded
// with new connections as well.
func (h *health) move() {
	now, moved := time.Now().UnixNano(), h.moved.Load()
	if now-moved > int64(time.Second) && h.moved.CompareAndSwap(moved, now) {
		h.era.Add(1)
	}
}

// observe learns from the result of a statement, from either driver.
func (h *health) observe(err error) {
	answer, answered := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !answered || h.standby {
		return
	}
	switch answer.SQLState() {
	case stateReadOnly:
		h.move()
	case stateDiskFull:
		h.full.Store(true)
	}
}

// Observe learns from the result of a statement on a connection outside this pool.
func (db *DB) Observe(err error) { db.health.observe(err) }

// DiskFull is why nothing can be written when the server's disk is full.
const DiskFull = "the disk of the database is full"

// Unwritable returns why nothing can be written, in words for an operator, or an empty string. It
// queries the server, and tries to write only after a statement of this process has found the disk
// full.
func (db *DB) Unwritable(ctx context.Context) (string, error) {
	var readOnly bool
	err := db.GetContext(ctx, &readOnly, `
		SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`)
	if err != nil {
		return "", fmt.Errorf("asking whether the database can be written: %w", err)
	}
	if readOnly {
		db.health.move()
		return "the database can only be read: it is a standby, or was set so", nil
	}
	if !db.health.full.Load() {
		return "", nil
	}
	return db.TryWriting(ctx)
}

// TryWriting writes some pages to a table that is dropped at once, and returns DiskFull if the disk
// has no room for them.
func (db *DB) TryWriting(ctx context.Context) (string, error) {
	db.health.full.Store(false)
	_, err := db.ExecContext(ctx, `
		CREATE TEMPORARY TABLE room ON COMMIT DROP AS
		SELECT repeat(md5(i::text), 60) AS filler FROM generate_series(1, 8) AS i`)
	if err != nil && db.health.full.Load() {
		return DiskFull, nil
	}
	return "", err
}
