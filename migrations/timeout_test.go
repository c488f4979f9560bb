package migrations_test

import (
	"testing"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// TestMigrationsTakeAsLongAsTheyDo: a bound on statements that somebody set is for calls, and holds
// again for whoever uses the connection next.
func TestMigrationsTakeAsLongAsTheyDo(t *testing.T) {
	t.Parallel()
	whole := pgtest.New(t)
	_, err := whole.ExecContext(t.Context(), `
		CREATE FUNCTION refuse_bound() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('statement_timeout') <> '0' THEN
				RAISE EXCEPTION '% would be cut off', tg_tag;
			END IF;
		END $$;
		CREATE EVENT TRIGGER refuse_bound ON ddl_command_start
			WHEN TAG IN ('ALTER TABLE', 'CREATE INDEX', 'CREATE TABLE')
			EXECUTE FUNCTION refuse_bound()`)
	if err != nil {
		t.Fatal(err)
	}
	const bound = "59min"
	db, err := postgres.Open(t.Context(), whole.URL()+"&statement_timeout="+bound)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name := ""; name != "lists"; {
		if name, err = migrations.Down(t.Context(), db.DB.DB); err != nil || name == "" {
			t.Fatalf("the lists were not taken back (%v)", err)
		}
	}
	if err := migrations.Up(t.Context(), db.DB.DB); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // the one that is used next
	var left string
	err = db.GetContext(t.Context(), &left, `SHOW statement_timeout`)
	if err != nil || left != bound {
		t.Errorf("statements are bounded by %s afterwards (%v), want %s", left, err, bound)
	}
}
