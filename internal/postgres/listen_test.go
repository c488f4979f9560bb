package postgres_test

import (
	"testing"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestListenLeavesAServerThatLetsNobodyWrite: the listening connection is made again like all
// others, and goes on receiving.
func TestListenLeavesAServerThatLetsNobodyWrite(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	news := db.Listen(t.Context(), "any_news")
	listens := func(but int) (pid int) {
		waittest.Until(t, "a new connection listens", func() bool {
			err := db.GetContext(t.Context(), &pid, `
				SELECT coalesce(max(pid), 0)
				  FROM pg_stat_activity
				 WHERE datname = current_database()
				   AND state = 'idle'
				   AND query LIKE 'LISTEN%any_news%'`)
			if err != nil {
				t.Fatal(err)
			}
			return pid != 0 && pid != but
		})
		return pid
	}
	old := listens(0)
	waittest.Receive(t, "word that it listens", news)
	_, err := db.ExecContext(t.Context(),
		`DO $$ BEGIN RAISE EXCEPTION 'read-only' USING ERRCODE = '25006'; END $$`)
	if err == nil {
		t.Fatal("the server lets write")
	}
	listens(old)
	waittest.Receive(t, "word that it listens at another connection", news)
	if _, err := db.ExecContext(t.Context(), `NOTIFY any_news`); err != nil {
		t.Fatal(err)
	}
	waittest.Receive(t, "the notification", news)
}
