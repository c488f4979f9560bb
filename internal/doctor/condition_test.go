package doctor_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/doctor"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/migrations"
)

// sound makes the server look like a production server; the tests' server need not be durable.
const sound = `CREATE VIEW public.pg_settings AS
	SELECT name, 'on' AS setting FROM pg_catalog.pg_settings`

// ailments are the faults that the doctor must find, each with the command that fixes it. What
// the server reports about itself is replaced by a view or function of the same name in the
// schema public, which the service's search_path puts first.
var ailments = []struct {
	name, broken   string
	check          string
	finding        doctor.Finding
	detail, remedy string
}{
	{"sound server", sound, "server", doctor.OK, "Autovacuum is on", ""},
	{"room and rights", "", "writable", doctor.OK, "accepts changes", ""},
	{"partitions", "", "partitions", doctor.OK, "this month and 3 more", ""},
	{"queues", "", "queues", doctor.OK, "none falls behind", ""},
	{
		"events that nobody publishes", `INSERT INTO outbox (event_uid, occurred_at, recorded_at, kind,
			status, merchant_uid, application_uid, owed, delivery_uids)
			SELECT gen_random_uuid(), now(), now() - interval '10 minutes', 'task.created', 'Pending',
			       gen_random_uuid(), gen_random_uuid(), '{}', '{}'
			  FROM generate_series(1, 3)`,
		"deliveries", doctor.Failed, "3 are due and not sent", "drawbridge serve --roles worker",
	},
	{"deliveries", "", "deliveries", doctor.OK, "None is overdue", ""},
	{"transactions", "", "transactions", doctor.OK, "longest open one", ""},
	{"ids", "", "xids", doctor.OK, "of 2000", ""},
	{"no backup in development", "", "backup", doctor.Skipped, "None was recorded", ""},
	{
		"a worker", `INSERT INTO processes (process_uid, host, pid, roles, version, started_at,
			last_beat_at, skew_us) VALUES (gen_random_uuid(), 'h', 1, '{api,worker}', 'v', now(), now(), 0)`,
		"workers", doctor.OK, "Workers running: 1.", "",
	},
	{
		"a dead worker", `INSERT INTO processes (process_uid, host, pid, roles, version, started_at,
			last_beat_at, skew_us)
			VALUES (gen_random_uuid(), 'h', 1, '{worker}', 'v', now(), now() - interval '2 minutes', 0)`,
		"workers", doctor.Warning, "no e-mail is sent", "drawbridge serve --roles worker",
	},
	{
		"a standby", `CREATE FUNCTION public.pg_is_in_recovery() RETURNS boolean
			LANGUAGE sql AS 'SELECT true'`,
		"writable", doctor.Failed, "can only be read", "SELECT pg_promote()",
	},
	{
		"a full disk", `CREATE FUNCTION meet_full_disk() RETURNS event_trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$;
			CREATE EVENT TRIGGER full_disk ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS')
			EXECUTE FUNCTION meet_full_disk()`,
		"writable", doctor.Failed, "disk of the database is full", "FROM pg_replication_slots",
	},
	{
		"this month has no table", dropMonth("0"),
		"partitions", doctor.Failed, "this month have no table", "drawbridge serve",
	},
	{
		"the next month has no table", dropMonth("1"),
		"partitions", doctor.Warning, "and 0 more", "drawbridge serve",
	},
	{
		"a paused queue", `INSERT INTO river_queue (name, paused_at, updated_at)
			VALUES ('email', now(), now())`,
		"queues", doctor.Failed, "Paused: email", "drawbridge queue resume email",
	},
	{
		"a growing queue", `INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
			SELECT 'available', 'webhook', 'any', '{}', 25, now() - interval '10 minutes'
			  FROM generate_series(1, 7)`,
		"queues", doctor.Failed, "webhook (7 jobs wait, the oldest for 10m", "drawbridge serve",
	},
	{
		"an overdue delivery", `INSERT INTO deliveries (delivery_uid, event_uid, subscription_uid, event,
			status, state, event_at, next_attempt_at, created_at, queued)
			VALUES (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'task.created', 'Pending',
			'pending', now(), now() - interval '1 hour', now(), false)`,
		"deliveries", doctor.Failed, "1 are due and not sent", "drawbridge delivery list --state pending",
	},
	{
		"no autovacuum", `CREATE VIEW public.pg_settings AS SELECT name,
			CASE WHEN name = 'autovacuum' THEN 'off' ELSE 'on' END AS setting FROM pg_catalog.pg_settings`,
		"server", doctor.Warning, "Off: autovacuum.", "ALTER SYSTEM RESET autovacuum",
	},
	{
		"commits that do not wait", `CREATE VIEW public.pg_settings AS SELECT name,
			CASE WHEN name = 'synchronous_commit' THEN 'off' ELSE 'on' END AS setting
			FROM pg_catalog.pg_settings`,
		"server", doctor.Warning, "Off: synchronous_commit.", "ALTER SYSTEM RESET synchronous_commit",
	},
	{
		"a table without autovacuum", sound + `; ALTER TABLE river_job SET (autovacuum_enabled = false)`,
		"server", doctor.Warning, "autovacuum of river_job",
		"ALTER TABLE river_job RESET (autovacuum_enabled)",
	},
	{
		"an old transaction", openFor("10 minutes"), "transactions", doctor.Warning,
		"open for 10m0s, and vacuum waits for it: ana, report", "SELECT pg_terminate_backend(4711)",
	},
	{
		"a very old transaction", openFor("2 hours"), "transactions", doctor.Failed, "open for 2h0m0s",
		"SELECT pg_terminate_backend(4711)",
	},
	{
		"a prepared transaction", `CREATE VIEW public.pg_prepared_xacts AS SELECT 'left-behind' AS gid,
			now() - interval '3 hours' AS prepared, current_database() AS database`,
		"transactions", doctor.Failed, "left-behind", "ROLLBACK PREPARED 'left-behind'",
	},
	{"old ids", frozen("600000000"), "xids", doctor.Warning, "600 million", "vacuumdb --all --freeze"},
	{"very old ids", frozen("1600000000"), "xids", doctor.Failed, "1600 million", "vacuumdb"},
	{
		"an archive that fails", `CREATE VIEW public.pg_stat_archiver AS
			SELECT now() AS last_failed_time, now() - interval '1 day' AS last_archived_time;
			CREATE FUNCTION public.current_setting(name text) RETURNS text LANGUAGE sql AS $$
			SELECT CASE name WHEN 'archive_mode' THEN 'on' ELSE pg_catalog.current_setting(name) END $$`,
		"backup", doctor.Failed, "not archived", "FROM pg_stat_archiver",
	},
	{
		"an old backup", backedUp("30 hours"), "backup", doctor.Warning, "The last one was recorded",
		"drawbridge backup record",
	},
	{"a fresh backup", backedUp("3 hours"), "backup", doctor.OK, "The last one was recorded", ""},
	{
		"a clock that is off", `CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz
			LANGUAGE sql AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 minute' $$`,
		"clock", doctor.Failed, "differ by", "NTP",
	},
}

// dropMonth drops the table of the month that many months from now.
func dropMonth(ahead string) string {
	return `DO $$ BEGIN EXECUTE format('DROP TABLE %I',
		to_char(date_trunc('month', now() AT TIME ZONE 'UTC') + interval '` + ahead + ` months',
		        '"attempts_y"YYYY"m"MM')); END $$`
}

// openFor simulates a transaction that has been open for an interval.
func openFor(interval string) string {
	return `CREATE VIEW public.pg_stat_activity AS SELECT 4711 AS pid, current_database() AS datname,
		'client backend' AS backend_type, now() - interval '` + interval + `' AS xact_start,
		'ana' AS usename, 'report' AS application_name, NULL::inet AS client_addr, 'active' AS state,
		'SELECT 1' AS query`
}

// frozen simulates databases whose oldest row has an age in transactions.
func frozen(age string) string {
	return `CREATE VIEW public.pg_database AS SELECT oid, datname, datminmxid,
		((txid_current() - ` + age + ` + 8589934592) % 4294967296)::text::xid AS datfrozenxid
		FROM pg_catalog.pg_database`
}

func backedUp(ago string) string {
	return `INSERT INTO installation (identity, recorded_at, backed_up_at)
		VALUES ('any', now(), now() - interval '` + ago + `')`
}

// TestDoctorFinds causes each fault and runs the doctor.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	for _, one := range ailments {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			h := patient(t, one.broken)
			found := append(doctor.Database(t.Context(), h.DB),
				doctor.Services(t.Context(), h.Services, nil)...)
			diagnosed(t, found, one.check, one.finding, one.detail, one.remedy)
		})
	}
}

// TestDoctorKnowsWhereASettingIsMade: for a setting of the service's role or database, the
// doctor prints the commands that reset it.
func TestDoctorKnowsWhereASettingIsMade(t *testing.T) {
	t.Parallel()
	const (
		readOnly = ` SET default_transaction_read_only = on`
		timeout  = ` SET statement_timeout = '9s'`
	)
	for name, one := range map[string]struct {
		made    string // with ROLE and DATABASE in place of their names
		check   string
		finding doctor.Finding
		detail  string
	}{
		"reading by a role": {
			`ALTER ROLE ROLE` + readOnly, "writable", doctor.Failed, "only be read",
		},
		"reading of a database": {
			`ALTER DATABASE DATABASE` + readOnly, "writable", doctor.Failed, "only be read",
		},
		"reading by a role in a database": {
			`ALTER ROLE ROLE IN DATABASE DATABASE` + readOnly, "writable", doctor.Failed, "only be read",
		},
		"timeout of a role": {
			`ALTER ROLE ROLE` + timeout, "server", doctor.Warning, "statement_timeout",
		},
		"timeout of a database": {
			`ALTER DATABASE DATABASE` + timeout, "server", doctor.Warning, "statement_timeout",
		},
		"few of a role": {
			`ALTER ROLE ROLE CONNECTION LIMIT 9`, "connections", doctor.Failed, "Of 9 for the role role_",
		},
		"some of a role": {
			`ALTER ROLE ROLE CONNECTION LIMIT 40`, "connections", doctor.Warning, "up to 41",
		},
		"some of a database": {
			`ALTER DATABASE DATABASE CONNECTION LIMIT 40`, "connections", doctor.Warning,
			"Of 40 for the database ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := pgtest.New(t)
			role, address := pgtest.Role(t, whole, "")
			exec := func(statement string) {
				t.Helper()
				if _, err := whole.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			var database string
			if err := whole.GetContext(t.Context(), &database, `
				SELECT quote_ident(current_database())`); err != nil {
				t.Fatal(err)
			}
			// The server of the tests does not guarantee durability.
			exec(sound + `; GRANT SELECT ON public.pg_settings TO PUBLIC`)
			address += "&search_path=public,pg_catalog"
			look := func() doctor.Checkup {
				t.Helper()
				db, err := postgres.Open(t.Context(), address)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				found := doctor.Services(t.Context(), apptest.On(t, db).Services, nil)
				return found[slices.IndexFunc(found,
					func(c doctor.Checkup) bool { return c.Name == one.check })]
			}
			if got := look(); got.Finding != doctor.OK {
				t.Errorf("before: %+v", got)
			}
			exec(strings.NewReplacer("ROLE ROLE", "ROLE "+role, "DATABASE DATABASE",
				"DATABASE "+database).Replace(one.made))
			got := look()
			if got.Finding != one.finding || !strings.Contains(got.Detail, one.detail) {
				t.Errorf("with %s: %+v", one.made, got)
			}
			_, commands, _ := strings.Cut(got.Remedy, `s a superuser: psql "$ADMIN_URL"`)
			commands, _, _ = strings.Cut(commands, ". ")
			superuser, err := whole.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer superuser.Close()
			for _, part := range strings.Split(commands, ` --command="`)[1:] {
				statement, _, _ := strings.Cut(strings.ReplaceAll(part, `\"`, "\x00"), `"`)
				statement = strings.ReplaceAll(statement, "\x00", `"`)
				if _, err := superuser.ExecContext(t.Context(), statement); err != nil {
					t.Errorf("%s: %v", statement, err)
				}
			}
			if got := look(); got.Finding != doctor.OK {
				t.Errorf("after %s: %+v", commands, got)
			}
		})
	}
}

// TestDoctorSaysWhyThereIsNoConnection and what helps, which may be outside DATABASE_URL.
func TestDoctorSaysWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	role, address := pgtest.Role(t, pgtest.New(t), "CONNECTION LIMIT 0")
	_, full := postgres.Open(t.Context(), address)
	for remedy, err := range map[string]error{
		`ALTER ROLE \"` + role + `\" CONNECTION LIMIT -1`: full,
		"max_connections": &pq.Error{
			Code: "53300", Message: "sorry, too many clients already",
		},
		"DRAWBRIDGE_PREPARED_STATEMENTS=false": errors.New(
			"pq: unsupported startup parameter: hash_mem_multiplier (08P01)"),
		"ignore_startup_parameters = extra_float_digits": errors.New(
			"pq: unsupported startup parameter: extra_float_digits (08P01)"),
		"Check DATABASE_URL": errors.New("connect: connection refused"),
	} {
		if err == nil {
			t.Fatalf("nothing kept it from what %s helps against", remedy)
		}
		got := doctor.Unreachable(err)
		if got.Finding != doctor.Failed || !strings.Contains(got.Remedy, remedy) {
			t.Errorf("of %v it says %+v", err, got)
		}
	}
}

// TestDoctorLeavesOutWhatNeedsTheSchema while the schema has to be migrated.
func TestDoctorLeavesOutWhatNeedsTheSchema(t *testing.T) {
	t.Parallel()
	h := patient(t, "")
	if _, err := migrations.Down(t.Context(), h.DB.DB.DB); err != nil {
		t.Fatal(err)
	}
	found := doctor.Services(t.Context(), h.Services, nil)
	for _, check := range []string{"condition", "keys", "stopped", "restore", "https"} {
		diagnosed(t, found, check, doctor.Skipped, "schema has to be current", "")
	}
}

// TestDoctorFindsStoppedSubscriptions, whichever process lacks the keys.
func TestDoctorFindsStoppedSubscriptions(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	made := h.Subscribe(t, nil)
	look := func(finding doctor.Finding, said ...string) {
		t.Helper()
		diagnosed(t, doctor.Services(t.Context(), h.Services, []string{"https://127.0.0.1:1"}),
			"stopped", finding, said...)
	}
	look(doctor.OK, "No subscription is stopped", "")
	h.Exec(t, `UPDATE subscriptions SET stopped_at = now()`)
	look(doctor.Failed, made.UID.String(), "some process has another DRAWBRIDGE_SECRETS_KEY")
	h.Exec(t, `UPDATE subscriptions SET secret_sealed = 'v1.damaged'`)
	look(doctor.Failed, made.UID.String(), "drawbridge subscription show "+made.UID.String())
}

// patient is an installation that statements have broken.
func patient(t *testing.T, broken string, variables ...string) *apptest.Harness {
	t.Helper()
	address, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := postgres.Open(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if _, err := whole.ExecContext(t.Context(), `SELECT; `+broken); err != nil {
		t.Fatal(err)
	}
	query := address.Query()
	query.Set("search_path", "public,pg_catalog")
	address.RawQuery = query.Encode()
	db, err := postgres.Open(t.Context(), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return apptest.On(t, db, variables...)
}

// diagnosed checks a finding, its detail and its remedy (none if said[1] is empty).
func diagnosed(
	t *testing.T, found []doctor.Checkup, check string, finding doctor.Finding, said ...string,
) {
	t.Helper()
	for _, got := range found {
		if got.Name != check {
			continue
		}
		if got.Finding != finding || !strings.Contains(got.Detail, said[0]) ||
			!strings.Contains(got.Remedy, said[1]) || said[1] == "" && got.Remedy != "" {
			t.Errorf("%+v, want %s with %q", got, finding, said)
		}
		return
	}
	t.Errorf("nobody looks at %s, only at %d other things", check, len(found))
}

// TestDoctorExaminesTheMail gives the mail server a wrong password, and mails a sender that
// nobody outside can reply to.
func TestDoctorExaminesTheMail(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(true)
	server := emailtest.NewServer(t, emailtest.Options{
		TLS: &certificate, User: "ana", Password: "right",
	})
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("ana", "wrong")
	h := patient(t, "", "DRAWBRIDGE_SMTP_URL", address.String(),
		"DRAWBRIDGE_MAIL_FROM", "Bridge <bridge@localhost>")
	found := doctor.Services(t.Context(), h.Services, nil)
	diagnosed(t, found, "mail", doctor.Failed,
		"did not accept the sign-in of ana", "user and password")
	diagnosed(t, found, "sender", doctor.Warning, "bridge@localhost", "DRAWBRIDGE_MAIL_FROM='")
}

// TestProductionWantsMore: what development may lack is a failure in production.
func TestProductionWantsMore(t *testing.T) {
	t.Parallel()
	h := patient(t, `CREATE VIEW public.pg_settings AS SELECT name,
		CASE WHEN name = 'fsync' THEN 'off' ELSE 'on' END AS setting FROM pg_catalog.pg_settings`,
		"DRAWBRIDGE_ENV", "production", "DRAWBRIDGE_PUBLIC_URL", "https://bridge.example")
	found := doctor.Services(t.Context(), h.Services, nil)
	diagnosed(t, found, "server", doctor.Failed, "Off: fsync.", "ALTER SYSTEM RESET fsync")
	diagnosed(t, found, "workers", doctor.Failed, "No worker is running", "--roles worker")
	diagnosed(t, found, "backup", doctor.Warning, "None was ever recorded", "drawbridge backup record")
	diagnosed(t, found, "mail", doctor.Warning, "No mail server", "DRAWBRIDGE_SMTP_URL")
}
