// Package postgres opens the database and runs transactions in it.
//
// A use case is one transaction: the edge that serves it (a handler, a command, a job) opens it
// with DB.InTx and passes the Tx down. Tx.Now is the one time of the use case, so all of its rows
// agree. Driver errors are classified in errors.go and unavailable.go and nowhere else;
// waitbudget.go limits how long a request may wait, bound.go enforces that on connections,
// breaker.go protects a server that refuses them; cursors for keyset pages are in cursor.go.
// Sub-package pgserver runs a server for development and tests.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// txTries is how often InTx runs a function that the database asks to repeat.
const txTries = 4

// DB is a pool of connections and the clock for its users.
type DB struct {
	*sqlx.DB
	// Now is the clock, which follows the database's: see SyncClock. Tests replace
	// it before the first use.
	Now     func() time.Time
	url     string
	engine  *sqlx.DB
	clock   clock
	timeout time.Duration
	health  *health
	chosen  options
	replica *replica
}

// Querier is the part of a DB or a Tx that reads.
type Querier interface {
	GetContext(ctx context.Context, dest any, query string, args ...any) error
	SelectContext(ctx context.Context, dest any, query string, args ...any) error
}

// Tx is an open transaction and its time.
type Tx struct {
	*sqlx.Tx
	// Now is when the transaction began, in UTC with microseconds, the
	// database's own resolution.
	Now time.Time

	after []func()
}

// maxConnections bounds the pool.
const maxConnections = 32

// Option changes how Open connects.
type Option func(*options)

type options struct {
	unprepared bool
	// statementLife is the life of cachingConnector.
	statementLife time.Duration
	timeout       time.Duration
	health        *health
	replica       string
	mostLag       time.Duration
}

// WithoutStatements keeps connections from preparing statements, for a pooler
// between here and the server that gives each transaction another connection.
func WithoutStatements() Option { return func(o *options) { o.unprepared = true } }

// WithTimeout replaces DefaultTimeout.
func WithTimeout(timeout time.Duration) Option { return func(o *options) { o.timeout = timeout } }

// Open connects to the database at rawURL (a postgres:// URL) and checks that
// it answers. TLS is used where the server offers it, unless the URL's sslmode
// says otherwise.
func Open(ctx context.Context, rawURL string, choices ...Option) (*DB, error) {
	chosen := options{timeout: DefaultTimeout, health: new(health), statementLife: statementLife}
	for _, choose := range choices {
		choose(&chosen)
	}
	dsn, err := dataSource(rawURL, chosen)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(dsn, chosen, maxConnections)
	if err != nil {
		return nil, err
	}
	db := &DB{DB: pool, url: dsn, timeout: chosen.timeout, health: chosen.health, chosen: chosen}
	db.Now = db.clock.now
	if err := db.openEngine(chosen); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if chosen.replica != "" {
		if db.replica, err = openReplica(chosen); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	asking, cancel := context.WithTimeout(ctx, chosen.timeout)
	defer cancel()
	if _, err := db.SyncClock(asking); err != nil {
		_ = db.Close() // the query's error says more
		return nil, reason(err, chosen.timeout)
	}
	return db, nil
}

// reason returns why there was no connection, if that is what err is about, without what the
// connection was for.
func reason(err error, timeout time.Duration) error {
	broken, ok := errors.AsType[*ConnectionError](err)
	if !ok {
		return err
	}
	network, ok := errors.AsType[net.Error](err)
	if ok && network.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", timeout, broken)
	}
	return broken
}

// Place returns where a URL leads, HOST:PORT/NAME, without the user and the password.
func Place(rawURL string) string {
	settings, err := pq.NewConfig(rawURL)
	if err != nil {
		return "an address that cannot be read"
	}
	host := func(name string, port uint16) string {
		return net.JoinHostPort(name, strconv.FormatUint(uint64(port), 10))
	}
	hosts := []string{host(settings.Host, settings.Port)}
	for _, other := range settings.Multi {
		hosts = append(hosts, host(other.Host, other.Port))
	}
	return strings.Join(hosts, ",") + "/" + settings.Database
}

// openPool prepares a pool, which connects when it is used.
func openPool(dsn string, chosen options, most int) (*sqlx.DB, error) {
	bound, err := newBoundConnector(dsn, chosen)
	if err != nil {
		return nil, fmt.Errorf("reading the database URL: %w", err)
	}
	var connector driver.Connector = bound
	if !chosen.unprepared {
		connector = &cachingConnector{
			Connector: bound, limit: cachedStatements, life: chosen.statementLife,
		}
	}
	pool := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	return pool, nil
}

// Close closes every connection. One that broke before is no error.
func (db *DB) Close() error {
	err := db.DB.Close()
	if db.engine != nil {
		err = errors.Join(err, db.engine.Close())
	}
	if db.replica != nil {
		err = errors.Join(err, db.replica.pool.Close())
	}
	if isPassing(err) {
		return nil
	}
	return err
}

// sessionDefaults are parameters of our connections, unless the URL sets them.
var sessionDefaults = map[string]string{
	// How long a transaction may wait for its next statement: far above what a living process takes. A
	// frozen process would keep its locks until it wakes, and keep others from the work that they took
	// over from it.
	"idle_in_transaction_session_timeout": "60s",
	// Compiling a statement takes longer than any of ours may run.
	"jit": "off",
	// It lets a statement hash the applications of a large merchant, 800,000 where work_mem is 4 MB,
	// instead of scanning a list of them for each row.
	"hash_mem_multiplier": "8",
}

// dataSource checks the URL and adds the default sslmode, and sessionDefaults where no pooler lends
// the connections. Errors do not quote the URL, which may hold a password.
func dataSource(rawURL string, chosen options) (string, error) {
	parsed, err := url.Parse(rawURL)
	if err != nil || (parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		return "", errors.New("the database URL must look like postgres://user:password@host:5432/name")
	}
	query := parsed.Query()
	query.Set("sslmode", cmp.Or(query.Get("sslmode"), "prefer"))
	if !chosen.unprepared {
		for name, value := range sessionDefaults {
			query.Set(name, cmp.Or(query.Get(name), value))
		}
	}
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}

// Timeout is how long a request may spend waiting for the database.
func (db *DB) Timeout() time.Duration { return db.timeout }

// Era counts how often the server turned out to refuse writes. Connections that were made in an
// earlier era lead to the wrong server.
func (db *DB) Era() int64 { return db.health.Era() }

// Reachable returns nil once the database can be reached as far as is known, for callers with their
// own connections, or an error that says why it cannot.
func (db *DB) Reachable(ctx context.Context) error {
	if db.health.breaker.closed() {
		return nil
	}
	return db.PingContext(ctx)
}

// URL is the data source that the pool connects to, for the queue's own driver.
func (db *DB) URL() string { return db.url }

// InTx runs use in a transaction and commits it when use returns nil.
//
// When the database itself asks for another try (deadlock, serialization failure), use runs again
// from the start, so it must keep no state of a failed run. It also runs again after a failure for
// want of partitions, once they are made: the clock was set ahead.
func (db *DB) InTx(ctx context.Context, use func(tx *Tx) error) error {
	var err error
	for range txTries {
		err = db.tryTx(ctx, use)
		if lacksPartition(err) {
			if _, makeErr := db.MakePartitions(ctx); makeErr != nil {
				return errors.Join(err, makeErr)
			}
		} else if !hasState(err, stateSerialization, stateDeadlock) && !isStale(err) {
			return err
		}
	}
	return err
}

func (db *DB) tryTx(ctx context.Context, use func(tx *Tx) error) (err error) {
	inner, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	// After a commit this is a no-op; it also covers a panic in use.
	defer func() { _ = inner.Rollback() }()
	tx := &Tx{Tx: inner, Now: db.Now().UTC().Truncate(time.Microsecond)}
	if err := use(tx); err != nil {
		return err
	}
	err = inner.Commit()
	switch {
	case IsUnavailable(err) && !hasState(err, stateSerialization, stateDeadlock):
		return fmt.Errorf("it may have taken effect, look before it is repeated: committing: %w", err)
	case err != nil:
		return fmt.Errorf("committing: %w", err)
	}
	for _, then := range tx.after {
		then()
	}
	return nil
}

// AfterCommit registers a function to call once tx has committed; it is not called otherwise. Work
// that must survive the end of the process does not belong there.
func (tx *Tx) AfterCommit(then func()) { tx.after = append(tx.after, then) }

// Savepoint runs use inside tx and rolls back only its work when it fails.
func (tx *Tx) Savepoint(ctx context.Context, use func() error) error {
	if _, err := tx.ExecContext(ctx, `SAVEPOINT operation`); err != nil {
		return fmt.Errorf("setting a savepoint: %w", err)
	}
	useErr := use()
	end := `RELEASE SAVEPOINT operation`
	if useErr != nil {
		end = `ROLLBACK TO SAVEPOINT operation`
	}
	if _, err := tx.ExecContext(ctx, end); err != nil {
		return errors.Join(useErr, fmt.Errorf("ending a savepoint: %w", err))
	}
	return useErr
}

// NewUID returns a version 7 identifier whose time part is now, so that keys
// sort as the use cases happened.
func NewUID(now time.Time) uuid.UUID {
	uid := uuid.Must(uuid.NewV7()) // fails only without a random source
	millis := uint64(now.UnixMilli())
	for i := range 6 {
		uid[i] = byte(millis >> (40 - 8*i))
	}
	return uid
}

// LikePrefix escapes s for use as the fixed beginning of a LIKE pattern.
func LikePrefix(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) + "%"
}
