package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
)

// ErrTransactionPooling says that a pooler in front of the server lends its connections for one
// transaction at a time.
var ErrTransactionPooling = errors.New("a pooler between here and PostgreSQL gives each " +
	"transaction another connection (pool_mode = transaction or statement); the service needs " +
	"pool_mode = session, or a DATABASE_URL that leads to PostgreSQL itself")

const (
	// poolingQuestions is how often each of two connections is asked for its server process.
	poolingQuestions = 4
	poolingTimeout   = 10 * time.Second
)

// CheckPooling returns ErrTransactionPooling when two open connections of ours are served by the
// same server process, or one by several in turn. That cannot happen where each has its own
// process: it shows a pooler that lends them. An idle pooler shows at the first question, since it
// lends the connection that came back last. A failed query is no error here.
func (db *DB) CheckPooling(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, poolingTimeout)
	defer cancel()
	var connections [2]*sqlx.Conn
	defer func() {
		for _, connection := range connections {
			if connection != nil {
				_ = connection.Close() // back into the pool
			}
		}
	}()
	for i := range connections {
		var err error
		if connections[i], err = db.Connx(ctx); err != nil {
			return nil // no database, or a pooler with one connection: reported elsewhere
		}
	}
	var served [2]int
	for range poolingQuestions {
		for i, connection := range connections {
			var process int
			// Without arguments this takes one round trip, which any pooler serves whole.
			if err := connection.GetContext(ctx, &process, `SELECT pg_backend_pid()`); err != nil {
				return nil // likewise
			}
			if process == served[1-i] || served[i] != 0 && process != served[i] {
				return ErrTransactionPooling
			}
			served[i] = process
		}
	}
	return nil
}
