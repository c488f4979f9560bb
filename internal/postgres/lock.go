package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Lock is an advisory lock on a connection of its own. The server frees it when the connection
// ends, so it shows others that its holder is alive.
type Lock struct {
	pool *sql.DB
	conn *sql.Conn
	db   *DB
	era  int64
}

// LockHeld renders the condition that a session of this database holds the advisory lock of a key.
func LockHeld(key string) string {
	return key + ` IN (
	           SELECT classid::bigint << 32 | objid::bigint
	             FROM pg_locks
	            WHERE locktype = 'advisory'
	              AND objsubid = 1
	              AND granted
	              AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
}

// errHeld is returned when another session holds the lock.
var errHeld = errors.New("another session has it")

// awaitPause is how long AwaitLock pauses between attempts.
const awaitPause = 250 * time.Millisecond

// AwaitLock is Lock, but waits until no other session has the lock.
func (db *DB) AwaitLock(ctx context.Context, key int64) (*Lock, error) {
	for {
		lock, err := db.Lock(ctx, key)
		if !errors.Is(err, errHeld) {
			return lock, err
		}
		if !Pause(ctx, awaitPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// Lock takes the advisory lock of a key that nobody else uses. A pooler that lends connections
// cannot keep a lock: behind one it returns nil.
func (db *DB) Lock(ctx context.Context, key int64) (*Lock, error) {
	if db.chosen.unprepared {
		return nil, nil //nolint:nilnil // no lock is no failure
	}
	lock := &Lock{db: db, era: db.Era()}
	pool, err := openPool(db.url, db.chosen, 1)
	if err != nil {
		return nil, err
	}
	lock.pool = pool.DB
	var taken bool
	if lock.conn, err = pool.Conn(ctx); err == nil {
		err = lock.conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, key).
			Scan(&taken)
	}
	if err == nil && !taken {
		err = errHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking advisory lock %d: %w", key, err), lock.Free())
	}
	return lock, nil
}

// Held reports whether the connection still leads to a server that accepts writes.
func (l *Lock) Held(ctx context.Context) bool {
	return l.era == l.db.Era() && l.conn.PingContext(ctx) == nil
}

// Free ends the connection, and with it the lock, if there is one.
func (l *Lock) Free() error {
	if l == nil {
		return nil
	}
	var err error
	if l.conn != nil {
		err = l.conn.Close()
	}
	if err = errors.Join(err, l.pool.Close()); isPassing(err) {
		return nil
	}
	return err
}
