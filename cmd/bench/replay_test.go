package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// notebook is a database with one table and an operation that writes into it.
type notebook struct {
	db      *postgres.DB
	tape    *recorder
	over    *postgres.DB
	kept    uuid.UUID
	subject uuid.UUID
}

func newNotebook(t *testing.T) *notebook {
	t.Helper()
	n := &notebook{db: pgtest.New(t), kept: uuid.New(), subject: uuid.New()}
	_, err := n.db.ExecContext(t.Context(), `
		CREATE TABLE notes (subject uuid, kept uuid, fresh uuid PRIMARY KEY, body bytea,
		                    at timestamptz, many uuid[], number integer)`)
	if err != nil {
		t.Fatal(err)
	}
	connector, err := pq.NewConnector(n.db.URL())
	if err != nil {
		t.Fatal(err)
	}
	n.tape = &recorder{Connector: connector}
	n.over = &postgres.DB{DB: sqlx.NewDb(sql.OpenDB(n.tape), "postgres"), Now: time.Now}
	t.Cleanup(func() {
		if err := n.over.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// operate writes a note about a subject, with a new identifier in a column and in a body, a
// known identifier, a time and an array.
func (n *notebook) operate(ctx context.Context, subject uuid.UUID) error {
	return n.over.InTx(ctx, func(tx *postgres.Tx) error {
		fresh := uuid.New()
		_, err := tx.ExecContext(ctx, `INSERT INTO notes VALUES ($1, $2, $3, $4, $5, $6, 7)`,
			subject, n.kept, fresh, []byte(`{"of":"`+subject.String()+`","is":"`+fresh.String()+`"}`),
			tx.Now, pq.Array([]uuid.UUID{subject}))
		if err != nil {
			return err
		}
		var found int
		err = tx.GetContext(ctx, &found, `SELECT count(*) FROM notes WHERE subject = $1`, subject)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `SELECT pg_notify('notes', $1)`, subject.String())
		return err
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	steps, err := n.tape.record(func() error { return n.operate(t.Context(), n.subject) })
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, step := range steps {
		verb, _, _ := strings.Cut(step.text, " ")
		texts = append(texts, verb)
	}
	if diff := cmp.Diff([]string{"", "INSERT", "SELECT", "SELECT", ""}, texts); diff != "" {
		t.Fatalf("recorded (-want +got):\n%s", diff)
	}
	if steps[0].action != begins || steps[4].action != commits {
		t.Errorf("recorded %+v", steps)
	}
	script, err := newScript(n.db.DB.DB, steps, n.subject, n.kept)
	if err != nil {
		t.Fatal(err)
	}
	targets := []uuid.UUID{uuid.New(), uuid.New()}
	for _, target := range targets {
		if err := script.replay(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	checkNotes(t, n, targets)
}

// checkNotes checks that each replay wrote what the operation would have written.
func checkNotes(t *testing.T, n *notebook, targets []uuid.UUID) {
	t.Helper()
	var notes []struct {
		Subject uuid.UUID `db:"subject"`
		Kept    uuid.UUID `db:"kept"`
		Fresh   uuid.UUID `db:"fresh"`
		Body    string    `db:"body"`
		Many    string    `db:"many"`
		At      time.Time `db:"at"`
	}
	err := n.db.SelectContext(t.Context(), &notes, `
		SELECT subject, kept, fresh, convert_from(body, 'UTF8') AS body, many::text AS many, at
		  FROM notes
		 ORDER BY at`)
	if err != nil {
		t.Fatal(err)
	}
	subjects := append([]uuid.UUID{n.subject}, targets...)
	if len(notes) != len(subjects) {
		t.Fatalf("%d notes, want %d", len(notes), len(subjects))
	}
	for i, note := range notes {
		want := `{"of":"` + subjects[i].String() + `","is":"` + note.Fresh.String() + `"}`
		if note.Subject != subjects[i] || note.Kept != n.kept || note.Body != want ||
			note.Many != "{"+subjects[i].String()+"}" {
			t.Errorf("note %d: %+v", i, note)
		}
		if i > 0 && !note.At.After(notes[i-1].At) {
			t.Errorf("note %d is from %s, the one before from %s", i, note.At, notes[i-1].At)
		}
	}
}

// A replay that fails returns an error and writes nothing.
func TestReplayFails(t *testing.T) {
	t.Parallel()
	n := newNotebook(t)
	steps, err := n.tape.record(func() error { return n.operate(t.Context(), n.subject) })
	if err != nil {
		t.Fatal(err)
	}
	unfinished, err := newScript(n.db.DB.DB, steps[:4], n.subject)
	if err != nil {
		t.Fatal(err)
	}
	if err := unfinished.replay(t.Context(), uuid.New()); err == nil {
		t.Error("an operation without its commit was played")
	}
	var count int
	err = n.db.GetContext(t.Context(), &count, `SELECT count(*) FROM notes`)
	if err != nil || count != 1 {
		t.Errorf("%d notes (%v), want the recorded one", count, err)
	}
	if _, err := newScript(n.db.DB.DB, nil, n.subject); err == nil {
		t.Error("an empty recording made a script")
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	p := throttle{every: 5 * time.Millisecond}
	start := time.Now()
	tests := []struct {
		after time.Duration
		want  bool
	}{
		{0, true},
		{time.Millisecond, false},
		{4 * time.Millisecond, false},
		{5 * time.Millisecond, true},
		{9 * time.Millisecond, false},
		{time.Second, true},
	}
	for _, test := range tests {
		if got := p.due(start.Add(test.after)); got != test.want {
			t.Errorf("due after %s: %t, want %t", test.after, got, test.want)
		}
	}
}
