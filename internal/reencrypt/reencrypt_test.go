package reencrypt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/reencrypt"
	"drawbridge/internal/secret"
)

// safe is a database with encrypted values in every column.
type safe struct {
	db       *postgres.DB
	old, new string
	uids     []uuid.UUID
	user     uuid.UUID
}

func newSafe(t *testing.T, subscriptions int) *safe {
	t.Helper()
	s := &safe{db: pgtest.New(t), old: secret.GenerateKey(), new: secret.GenerateKey()}
	keys := ring(t, s.old)
	partner, now := uuid.New(), time.Now()
	pgtest.Exec(t, s.db, `INSERT INTO partners VALUES ($1, 'P', $2)`, partner, now)
	for n := range subscriptions {
		uid := uuid.New()
		s.uids = append(s.uids, uid)
		seal := func(column, text string) string {
			return keys.Seal([]byte(text), "subscriptions", column, uid.String())
		}
		headers := seal("headers_sealed", fmt.Sprint("headers ", n))
		pgtest.Exec(t, s.db, `
			INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, secret_sealed,
			                           previous_sealed, previous_until, headers_sealed, events,
			                           all_merchants, state, created_at, updated_at)
			VALUES ($1, $2, 'https://x.example/', 'hmac', $3, $4, $6, $5, '{all}', true, 'active', $6, $6)`,
			uid, partner, seal("secret_sealed", fmt.Sprint("current ", n)),
			seal("secret_sealed", fmt.Sprint("previous ", n)), headers, now)
		for version := range 2 {
			pgtest.Exec(t, s.db, `
				INSERT INTO subscription_versions (subscription_uid, version, url, auth, headers_sealed,
				                                   events, merchant_uids, change, changed_by, changed_at)
				VALUES ($1, $2, 'https://x.example/', 'hmac', $3, '{all}', '{}', 'created', 'x', $4)`,
				uid, version+1, headers, now)
		}
	}
	user := uuid.New()
	s.user = user
	pgtest.Exec(t, s.db, `INSERT INTO users (user_uid, email, name, role, password_hash, created_at)
		VALUES ($1, 'a@b.example', 'A', 'admin', 'x', $2)`, user, now)
	pgtest.Exec(t, s.db, `
		INSERT INTO second_factors (user_uid, secret_sealed, created_at)
		VALUES ($1, $2, $3)`,
		user, keys.Seal([]byte("factor"), "second_factors", "secret_sealed", user.String()), now)
	pgtest.Exec(t, s.db, `
		INSERT INTO statement_keys (key_id, public_key, private_sealed, valid_from)
		VALUES ('k', decode(repeat('00', 32), 'hex'), $1, $2)`,
		keys.Seal([]byte("seed"), "statement_keys", "private_sealed", "k"), now)
	pgtest.Exec(t, s.db, `
		INSERT INTO tls_certificates (name, data_sealed, updated_at) VALUES ('a.b', $1, $2)`,
		keys.Seal([]byte("certificate"), "tls_certificates", "data_sealed", "a.b"), now)
	return s
}

func ring(t *testing.T, keys ...string) *secret.Keyring {
	t.Helper()
	parsed, err := secret.ParseKeyring(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func (s *safe) service(t *testing.T, keys ...string) *reencrypt.Service {
	t.Helper()
	return &reencrypt.Service{DB: s.db, Keys: ring(t, keys...)}
}

func (s *safe) rotate(t *testing.T, keys ...string) reencrypt.Report {
	t.Helper()
	report, err := s.service(t, keys...).Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A complete replacement: after it, the new key alone decrypts every value, and the values are
// unchanged.
func TestRotateReplacesAKey(t *testing.T) {
	t.Parallel()
	const subscriptions = 70 // more than one batch of versions and less than two
	s := newSafe(t, subscriptions)
	before, err := s.service(t, s.new, s.old).Check(t.Context())
	if err != nil || before.Stale != 5*subscriptions+3 || before.Lost != 0 {
		t.Fatalf("before: %+v, %v", before, err)
	}
	report := s.rotate(t, s.new, s.old)
	if report.Reencrypted != before.Stale || report.Stale != 0 || report.Skipped != 0 ||
		len(report.Failed) != 0 || fmt.Sprint(report.Used()) != fmt.Sprint([]string{report.Current}) {
		t.Errorf("report %+v", report)
	}
	if again := s.rotate(t, s.new, s.old); again.Reencrypted != 0 {
		t.Errorf("a second run re-encrypted %d", again.Reencrypted)
	}
	alone := ring(t, s.new)
	for n, uid := range s.uids {
		var row struct {
			Secret   string `db:"secret_sealed"`
			Previous string `db:"previous_sealed"`
			Headers  string `db:"headers_sealed"`
			Version  string `db:"version_headers"`
		}
		err := s.db.GetContext(t.Context(), &row, `
			SELECT s.secret_sealed, s.previous_sealed, s.headers_sealed,
			       v.headers_sealed AS version_headers
			  FROM subscriptions s
			  JOIN subscription_versions v ON v.subscription_uid = s.subscription_uid AND v.version = 2
			 WHERE s.subscription_uid = $1`, uid)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range [][3]string{
			{row.Secret, "secret_sealed", "current"},
			{row.Previous, "secret_sealed", "previous"},
			{row.Headers, "headers_sealed", "headers"},
			{row.Version, "headers_sealed", "headers"},
		} {
			plain, err := alone.Open(value[0], "subscriptions", value[1], uid.String())
			if err != nil || string(plain) != fmt.Sprint(value[2], " ", n) {
				t.Fatalf("%s of %d is %q, %v", value[1], n, plain, err)
			}
		}
	}
}

func TestRotateNamesWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	s := newSafe(t, 3)
	third := secret.GenerateKey()
	moved := ring(t, s.old).Seal([]byte("x"), "subscriptions", "secret_sealed", s.uids[1].String())
	pgtest.Exec(t, s.db, `UPDATE subscriptions SET secret_sealed = $2 WHERE subscription_uid = $1`,
		s.uids[0], moved)
	pgtest.Exec(t, s.db, `UPDATE subscriptions SET headers_sealed = $2 WHERE subscription_uid = $1`,
		s.uids[2],
		ring(t, third).Seal([]byte("x"), "subscriptions", "headers_sealed", s.uids[2].String()))
	report := s.rotate(t, s.new, s.old)
	if len(report.Failed) != 2 || report.Stale != 2 || report.Lost != 1 || report.Reencrypted != 16 {
		t.Errorf("report %+v", report)
	}
	said := strings.Join(report.Failed, "\n")
	for _, want := range []string{
		s.uids[0].String() + ": it is damaged", s.uids[2].String() + ": its key is not in",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

// A value that the service replaces meanwhile is left alone.
func TestRotateLeavesWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	s := newSafe(t, 1)
	uid := s.uids[0]
	fresh := ring(t, s.new).Seal([]byte("rotated"), "subscriptions", "secret_sealed", uid.String())
	tx := pgtest.Begin(t, s.db, `
		UPDATE subscriptions
		   SET secret_sealed = $2
		 WHERE subscription_uid = $1`, uid, fresh)
	reports := make(chan reencrypt.Report, 1)
	go func() {
		report, err := s.service(t, s.new, s.old).Rotate(context.Background())
		if err != nil {
			t.Error(err)
		}
		reports <- report
	}()
	pgtest.WaitForLock(t, s.db)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if report := <-reports; report.Skipped != 1 || report.Stale != 0 {
		t.Errorf("report %+v", report)
	}
	var stored string
	err := s.db.GetContext(t.Context(), &stored, `SELECT secret_sealed FROM subscriptions`)
	if err != nil || stored != fresh {
		t.Errorf("the service's value was replaced: %v", err)
	}
}

// A column of encrypted values that is not registered would be lost with its key.
func TestEverySealedColumnIsRegistered(t *testing.T) {
	t.Parallel()
	var found []string
	err := pgtest.New(t).SelectContext(t.Context(), &found, `
		SELECT table_name || '.' || column_name
		  FROM information_schema.columns
		 WHERE table_schema = 'public'
		   AND column_name LIKE '%sealed%'
		 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, column := range reencrypt.Columns() {
		known = append(known, column.String())
	}
	slices.Sort(known)
	if !slices.Equal(found, known) {
		t.Errorf("the schema has %v, the registry %v", found, known)
	}
}
