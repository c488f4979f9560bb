package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// health is what the answers to statements say of the server as such: whether it can be
// written. The pools of a process share one.
type health struct {
	// era moves on when the server turns out to let nobody write: it is a standby, or was
	// made one. Connections of an earlier era are given up, and the next ones are made to
	// whichever of the hosts can be written.
	era atomic.Int64
	// moved is when, in Unix nanoseconds.
	moved atomic.Int64
	// standby tells that the server is meant to let nobody write.
	standby bool
	// full tells that the server found no room for what was written last.
	full    atomic.Bool
	breaker breaker
}

// Era counts how often the server turned out to be one that lets nobody write.
func (h *health) Era() int64 { return h.era.Load() }

// move begins another era, at most once in a second: a server that lets nobody write is
// not to be overrun by new connections as well.
func (h *health) move() {
	now, moved := time.Now().UnixNano(), h.moved.Load()
	if now-moved > int64(time.Second) && h.moved.CompareAndSwap(moved, now) {
		h.era.Add(1)
	}
}

// heed learns from what came of a statement, through whichever driver.
func (h *health) heed(err error) {
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

// Heed learns from what came of a statement on a connection that is not one of this pool.
func (db *DB) Heed(err error) { db.health.heed(err) }

// DiskFull is why nothing can be written when the server has no room.
const DiskFull = "the disk of the database is full"

// Unwritable tells why nothing can be written, in words for anyone who watches over the
// service, or is empty. It asks the server, and tries to write only after a statement of
// this process found no room.
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

// TryWriting writes some pages of a table that is thrown away at once, and tells whether
// the disk had no room for them.
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
