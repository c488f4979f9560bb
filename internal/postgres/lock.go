package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Lock is an advisory lock on a connection of its own. The server frees it when the
// connection ends, so it tells others that its holder lives.
type Lock struct {
	pool *sql.DB
	conn *sql.Conn
	db   *DB
	era  int64
}

// Lock takes the advisory lock of a key that nobody else uses. Behind a pooler that lends
// connections there is none to keep: it returns nil.
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
		err = errors.New("another session has it")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking advisory lock %d: %w", key, err), lock.Free())
	}
	return lock, nil
}

// Held tells whether the connection still leads to a server that can be written.
func (l *Lock) Held(ctx context.Context) bool {
	return l.era == l.db.Era() && l.conn.PingContext(ctx) == nil
}

// Free ends the connection, and with it the lock.
func (l *Lock) Free() error {
	var err error
	if l.conn != nil {
		err = l.conn.Close()
	}
	if err = errors.Join(err, l.pool.Close()); isPassing(err) {
		return nil
	}
	return err
}
