package pgtest

import (
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Hold keeps a transaction open until the test ends: vacuum removes no row version that is deleted
// or replaced from now on.
func Hold(t testing.TB, db *postgres.DB) {
	t.Helper()
	Begin(t, db, `SELECT pg_current_xact_id()`)
}

// Blocks returns how many blocks of the tables and their indexes a function reads through alone, a
// pool of one connection. Nothing else may use the tables meanwhile.
func Blocks(t testing.TB, db *postgres.DB, alone *sqlx.DB, tables []string, work func()) int {
	t.Helper()
	report(t, db.DB)
	before := blocksRead(t, alone, tables)
	work()
	return blocksRead(t, alone, tables) - before
}

// report makes the idle connections of a pool report their statistics, which they otherwise do once
// a second.
func report(t testing.TB, pool *sqlx.DB) {
	t.Helper()
	var held []*sqlx.Conn // so that the next one is another
	for range pool.Stats().Idle {
		conn, err := pool.Connx(t.Context())
		if err == nil {
			held = append(held, conn)
			_, err = conn.ExecContext(t.Context(), `SELECT pg_stat_force_next_flush()`)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range held {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// blocksRead returns how many blocks of the tables were read, according to the reported statistics.
func blocksRead(t testing.TB, alone *sqlx.DB, tables []string) (count int) {
	t.Helper()
	_, err := alone.ExecContext(t.Context(), `SELECT pg_stat_force_next_flush()`)
	if err == nil {
		err = alone.GetContext(t.Context(), &count, `
			SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)
			  FROM pg_statio_user_tables
			 WHERE relname = ANY ($1)`, pq.Array(tables))
	}
	if err != nil {
		t.Fatal(err)
	}
	return count
}
