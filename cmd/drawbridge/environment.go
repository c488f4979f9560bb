package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/lmittmann/tint"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/internal/secret"
	"drawbridge/migrations"
)

// environment is everything that a command may use from outside the program.
type environment struct {
	ctx    context.Context //nolint:containedctx // of the one command that it is for
	args   []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	// names are the names of the environment variables.
	names []string
	// model is the grammar, for commands about commands.
	model *kong.Application
	// usageErr is the first error of the command line that the parser could not detect.
	usageErr error
	// databaseTimeout limits the total wait for the database, 0 for defaultDatabaseTimeout.
	databaseTimeout time.Duration
}

// defaultDatabaseTimeout is long enough to cancel millions of deliveries after a restore, and ends
// a wait for a lock that is never released or for a server that has died.
const defaultDatabaseTimeout = time.Hour

// config reads the settings and sets the logger up.
func (env *environment) config() (config.Config, error) {
	getenv, names, err := config.WithDotEnv(env.getenv, ".env")
	if err != nil {
		return config.Config{}, err
	}
	settings, err := config.Load(getenv, append(names, env.names...)...)
	if err != nil {
		return config.Config{}, err
	}
	if roots := getenv(rootsVariable); roots != "" && env.getenv(rootsVariable) == "" {
		// Only the .env file sets it.
		if err := os.Setenv(rootsVariable, roots); err != nil {
			return config.Config{}, fmt.Errorf("taking over %s: %w", rootsVariable, err)
		}
	}
	// On a terminal logs are coloured text, otherwise JSON.
	logs := jsonLogs(env.stderr)
	if settings.Env == config.Development && isTerminal(env.stderr) {
		logs = tint.NewTextHandler(env.stderr, &tint.Options{
			TimeFormat: "15:04:05.000", NoColor: !bool(env.styleOf(env.stderr)),
		})
	}
	slog.SetDefault(slog.New(logs))
	return settings, nil
}

// jsonLogs writes a JSON line for each message, with durations such as "11s": the library would
// write nanoseconds.
func jsonLogs(w io.Writer) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if attr.Value.Kind() == slog.KindDuration {
				attr.Value = slog.StringValue(attr.Value.Duration().String())
			}
			return attr
		},
	})
}

// rootsVariable names the file of trusted root certificates. Go itself reads it, and only from the
// environment.
const rootsVariable = "SSL_CERT_FILE"

// setupCommands may create the embedded database, since they set a service up. Other commands need
// an existing one, and would show results from an empty database.
var setupCommands = []string{
	"serve", "migrate", "demo", "seed", "partner", "merchant", "client", "product",
	"subscription", "delivery", "user",
}

// leaveRunning is the stop function for a server that this process did not start.
func leaveRunning() error { return nil }

// embedded returns the URL of the embedded database, which it starts unless a running service
// has done so, and a function that stops it.
func (env *environment) embedded() (url string, stop func() error, err error) {
	command := ""
	if len(env.args) > 0 {
		command = env.args[0]
	}
	dir, err := filepath.Abs(filepath.Join(app.DataDir, "postgres"))
	if err != nil {
		return "", nil, fmt.Errorf("looking for the embedded database: %w", err)
	}
	if _, err := os.Stat(dir); err != nil && !slices.Contains(setupCommands, command) {
		return "", nil, config.Errors{"DATABASE_URL is empty, and no embedded database is in " + dir +
			"; run the command with the settings of the service, see Commands beside the service in " +
			"the operations manual"}
	}
	// Only serve must not attach to a server that another process has started.
	if command != "serve" {
		fmt.Fprintf(env.stderr, "DATABASE_URL is empty: using the embedded database in %s\n", dir)
		if attached, running := pgserver.Attach(dir); running {
			return attached, leaveRunning, nil
		}
	}
	server, err := pgserver.Start(env.ctx, pgserver.Options{
		Dir:      dir,
		Progress: func(line string) { fmt.Fprintln(env.stderr, line) },
	})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), server.Stop, nil
}

// open connects to the configured database or to the embedded one; end closes the pool and
// stops the embedded server if this process started it.
func (env *environment) open(
	settings config.Config,
) (db *postgres.DB, end func() error, err error) {
	url, stop := settings.DatabaseURL, leaveRunning
	if url == "" {
		if url, stop, err = env.embedded(); err != nil {
			return nil, nil, err
		}
	}
	options := []postgres.Option{postgres.WithTimeout(settings.DatabaseTimeout)}
	if !settings.PreparedStatements {
		options = append(options, postgres.WithoutStatements())
	}
	if settings.ReadURL != "" {
		options = append(options, postgres.WithReplica(settings.ReadURL, settings.ReadLag))
	}
	if db, err = postgres.Open(env.ctx, url, options...); err != nil {
		if settings.DatabaseURL != "" {
			err = fmt.Errorf("DATABASE_URL: %s: %w", postgres.Place(url), err)
		}
		return nil, nil, errors.Join(err, stop())
	}
	return db, func() error { return errors.Join(db.Close(), stop()) }, nil
}

// use opens the database with a current schema for a command and closes it afterwards. It
// refuses a database of another environment and leaves it unchanged.
func (env *environment) use(do func(settings config.Config, db *postgres.DB) error) error {
	return env.withDatabase(func(settings config.Config, db *postgres.DB) error {
		err := app.CheckEnvironment(env.ctx, settings.Env, db)
		switch {
		case err != nil:
			return err
		case settings.Env == config.Development:
			// Development migrates by itself, production only by drawbridge migrate.
			err = migrations.Up(env.ctx, db.DB.DB)
		default:
			err = checkSchema(env.ctx, db)
		}
		if err != nil {
			return err
		}
		return do(settings, db)
	})
}

// checkSchema returns an error if migrations are missing.
func checkSchema(ctx context.Context, db *postgres.DB) error {
	missing, err := migrations.Pending(ctx, db.DB.DB)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("the database lacks the migrations %s; run drawbridge migrate up as the "+
		"role that owns the schema", strings.Join(missing, ", "))
}

// withDatabase opens the database as it is, without touching its schema, and
// closes it afterwards.
func (env *environment) withDatabase(
	do func(settings config.Config, db *postgres.DB) error,
) (err error) {
	if env.usageErr != nil {
		return env.usageErr
	}
	settings, err := env.config()
	if err != nil {
		return err
	}
	db, end, err := env.open(settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return explainReadOnly(do(settings, db))
}

// explainReadOnly replaces the error of a read-only server by one that says what to do.
func explainReadOnly(err error) error {
	if postgres.IsReadOnly(err) {
		return errors.New("the database is read-only: it is a standby, or was set read-only; name the " +
			"primary in DATABASE_URL")
	}
	return err
}

// withServices runs do with the services over an open database. How long it may wait for the
// database is limited.
func (env *environment) withServices(do func(s *app.Services) error) error {
	return env.use(func(settings config.Config, db *postgres.DB) error {
		s, err := env.services(settings, db)
		if err != nil {
			return err
		}
		return env.withDatabaseTimeout(func() error { return do(s) })
	})
}

// withDatabaseTimeout limits how long do may wait for the database.
func (env *environment) withDatabaseTimeout(do func() error) error {
	budget := cmp.Or(env.databaseTimeout, defaultDatabaseTimeout)
	ctx, end := postgres.WithWaitBudget(env.ctx, budget)
	defer end()
	env.ctx = ctx
	err := do()
	if err != nil && errors.Is(context.Cause(ctx), postgres.ErrOutOfTime) {
		err = fmt.Errorf("%w: given up after %s", postgres.ErrOutOfTime, budget)
	}
	return err
}

// services wires the services over an open database.
func (env *environment) services(settings config.Config, db *postgres.DB) (*app.Services, error) {
	keys, err := keyring(settings)
	if err != nil {
		return nil, err
	}
	getenv, _, err := config.WithDotEnv(env.getenv, ".env")
	if err != nil {
		return nil, err
	}
	return app.New(settings, db, keys, app.Options{
		Version: version, Effective: config.Effective(env.getenv, getenv),
	})
}

// check finds errors in well-formed settings that would keep serve from starting. It creates
// nothing.
func check(settings config.Config) error {
	var errs config.Errors
	if settings.SecretsKey != "" {
		if _, err := keyring(settings); err != nil {
			wrong, _ := errors.AsType[config.Errors](err) // no file is read or created for a key that is set
			errs = append(errs, wrong...)
		}
	}
	if errs = append(errs, app.CheckSettings(settings)...); len(errs) > 0 {
		return errs
	}
	return nil
}

// keyring reads the keys that encrypt secrets at rest. Development creates one the first time
// and keeps it in a file.
func keyring(settings config.Config) (*secret.Keyring, error) {
	if settings.SecretsKey != "" {
		keys, err := secret.ParseKeyring(settings.SecretsKey)
		if err != nil {
			return nil, config.Errors{"DRAWBRIDGE_SECRETS_KEY " + err.Error()}
		}
		if settings.Env.Hosted() && keys.Trivial() {
			return nil, config.Errors{"DRAWBRIDGE_SECRETS_KEY is one byte repeated; make a random " +
				"one: openssl rand -base64 32"}
		}
		return keys, nil
	}
	path := filepath.Join(app.DataDir, "secrets.key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			text, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the secrets key: %w", err)
	}
	keys, err := secret.ParseKeyring(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return keys, nil
}

// makeKey creates a file with a new key, complete or not at all, unless another process has.
func makeKey(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(secret.GenerateKey() + "\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		if err = os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(file.Name()))
}
