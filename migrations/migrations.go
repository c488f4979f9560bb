// Package migrations holds the schema: numbered SQL files and River's own
// migrations, applied in one ordered run.
//
// Every run takes a session-wide advisory lock, so processes that start
// together wait for each other. A migration that locks several tables that the
// service writes locks them first, in the one order that its tests hold. River's
// migrations come first, each in a transaction of its own, because one of them
// uses an enum value that another one adds, which Postgres refuses inside a single
// transaction.
package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

// FS holds the SQL migrations.
//
//go:embed *.sql
var FS embed.FS

// riverVersion is the schema version of the queue that this build works with.
const riverVersion = 7

// Step is one migration and whether the database has it.
type Step struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
}

// Hash identifies the schema: it changes whenever a migration does.
func Hash() string {
	sum := sha256.New()
	names, _ := fs.Glob(FS, "*.sql") // the pattern is constant, so it cannot be malformed
	slices.Sort(names)
	for _, name := range names {
		text, err := FS.ReadFile(name)
		if err != nil {
			panic(err) // embedded: the binary itself would be broken
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	fmt.Fprintf(sum, "river %d %s", riverVersion, fmt.Sprint(listTables, searchIndexes,
		applicationIndexes, listIndexes, filterIndexes, plainFilterIndexes))
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Up brings the database to the newest schema, beside a release that serves. A
// migration that does not get its locks at once gives way and tries again, for ten
// minutes. Concurrent calls are safe: one migrates, the others wait and find
// nothing left to do.
// A server that is too old for the schema is refused before anything is changed.
func Up(ctx context.Context, db *sql.DB) error {
	var number int
	err := db.QueryRowContext(ctx,
		`SELECT current_setting('server_version_num')::integer`).Scan(&number)
	if err != nil {
		return fmt.Errorf("asking for the version of Postgres: %w", err)
	}
	if err := supported(number); err != nil {
		return err
	}
	begun, err := askRecord(ctx, db)
	if err != nil {
		return err
	}
	if !begun.exists && !begun.creatable {
		return errors.New("migrating up: the database was never migrated, and this role may make " +
			"no tables; " + ownerMigrates)
	}
	for {
		err := patiently(ctx, func() error {
			return withProvider(db, func(provider *goose.Provider) error {
				_, err := provider.UpByOne(ctx)
				return err
			})
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("migrating up: %w", owned(err))
		}
	}
}

// LeastPostgres is the oldest major version of the server that the schema works with.
const LeastPostgres = 14

// supported refuses a server by the number of its version, such as 130021 for 13.21.
func supported(number int) error {
	if major := number / 10000; major < LeastPostgres {
		return fmt.Errorf("the database server is Postgres %d; Postgres %d or later is needed: "+
			"upgrade it, or name another server in DATABASE_URL", major, LeastPostgres)
	}
	return nil
}

// Down takes back the newest applied migration and returns its name, which is
// empty when there was none.
func Down(ctx context.Context, db *sql.DB) (string, error) {
	begun, err := askRecord(ctx, db)
	if err != nil || !begun.exists {
		return "", err
	}
	var name string
	err = patiently(ctx, func() error {
		return withProvider(db, func(provider *goose.Provider) error {
			current, err := provider.GetDBVersion(ctx)
			if err != nil {
				return fmt.Errorf("reading the schema version: %w", err)
			}
			if current == 0 {
				return nil
			}
			result, err := provider.Down(ctx)
			if err != nil {
				return fmt.Errorf("migrating down: %w", owned(err))
			}
			name = stepName(result.Source)
			return nil
		})
	})
	return name, err
}

// Status lists every migration in order.
func Status(ctx context.Context, db *sql.DB) ([]Step, error) {
	begun, err := askRecord(ctx, db)
	if err != nil {
		return nil, err
	}
	var steps []Step
	err = withProvider(db, func(provider *goose.Provider) error {
		if !begun.exists {
			for _, source := range provider.ListSources() {
				steps = append(steps, Step{Version: source.Version, Name: stepName(source)})
			}
			return nil
		}
		statuses, err := provider.Status(ctx)
		if err != nil {
			return fmt.Errorf("reading the schema status: %w", err)
		}
		for _, status := range statuses {
			steps = append(steps, Step{
				Version: status.Source.Version,
				Name:    stepName(status.Source),
				Applied: status.State == goose.StateApplied,
			})
		}
		return nil
	})
	return steps, err
}

// Pending lists the names of migrations that db lacks, without taking the
// migration lock, so that readiness can ask for it often.
func Pending(ctx context.Context, db *sql.DB) ([]string, error) {
	provider, err := newProvider(db)
	if err != nil {
		return nil, err
	}
	begun, err := askRecord(ctx, db)
	if err != nil {
		return nil, err
	}
	var current int64
	if begun.exists {
		if current, err = provider.GetDBVersion(ctx); err != nil {
			return nil, fmt.Errorf("reading the schema version: %w", err)
		}
	}
	var missing []string
	for _, source := range provider.ListSources() {
		if source.Version > current {
			missing = append(missing, stepName(source))
		}
	}
	return missing, nil
}

// record is the table of what was applied. Goose makes it when asked for anything, and tries for
// seconds where the role of the connection may not.
type record struct{ exists, creatable bool }

func askRecord(ctx context.Context, db *sql.DB) (record, error) {
	var found record
	err := db.QueryRowContext(ctx, `
		SELECT to_regclass($1) IS NOT NULL,
		       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`,
		goose.DefaultTablename).Scan(&found.exists, &found.creatable)
	if err != nil {
		return record{}, fmt.Errorf("looking for the record of migrations: %w", err)
	}
	return found, nil
}

// ownerMigrates says who may migrate.
const ownerMigrates = "run drawbridge migrate up as the role that owns the schema"

// owned says who may migrate when the role of the connection may not.
func owned(err error) error {
	if !hasState(err, "42501") {
		return err
	}
	return fmt.Errorf("%w; %s", err, ownerMigrates)
}

func withProvider(db *sql.DB, use func(*goose.Provider) error) error {
	locker, err := newLocker()
	if err != nil {
		return err
	}
	provider, err := newProvider(db, goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	return use(provider)
}

func newProvider(db *sql.DB, options ...goose.ProviderOption) (*goose.Provider, error) {
	options = append(options,
		goose.WithDisableGlobalRegistry(true),
		// Down, -1 takes back every version of the queue, its own bookkeeping included.
		goose.WithGoMigrations(goose.NewGoMigration(1,
			&goose.GoFunc{RunDB: riverMigrate(rivermigrate.DirectionUp, riverVersion)},
			&goose.GoFunc{RunDB: riverMigrate(rivermigrate.DirectionDown, -1)}),
			goose.NewGoMigration(listsVersion,
				&goose.GoFunc{RunDB: listsUp}, &goose.GoFunc{RunDB: listsDown}),
			goose.NewGoMigration(filtersVersion,
				&goose.GoFunc{RunDB: filtersUp}, &goose.GoFunc{RunDB: filtersDown})),
	)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, FS, options...)
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	return provider, nil
}

// riverMigrate brings the queue's tables to a version of theirs.
func riverMigrate(
	direction rivermigrate.Direction, target int,
) func(ctx context.Context, db *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		migrator, err := rivermigrate.New(riverdatabasesql.New(db), &rivermigrate.Config{
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return fmt.Errorf("reading the queue's migrations: %w", err)
		}
		options := &rivermigrate.MigrateOpts{TargetVersion: target}
		if _, err := migrator.Migrate(ctx, direction, options); err != nil {
			return fmt.Errorf("migrating the queue: %w", err)
		}
		return nil
	}
}

func stepName(source *goose.Source) string {
	if source.Path != "" {
		return source.Path
	}
	switch source.Version {
	case listsVersion:
		return "lists"
	case filtersVersion:
		return "filters"
	}
	return "river"
}
