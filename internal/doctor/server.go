package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
)

// psql returns a shell command that runs statements on the server.
func psql(statements ...string) string { return psqlAt("DATABASE_URL", statements...) }

// bySuperuser is psql for statements that the service's role may not run.
func bySuperuser(statements ...string) string {
	return "as a superuser: " + psqlAt("ADMIN_URL", statements...)
}

// psqlAt is psql for the server that a variable names. Each statement is a transaction.
func psqlAt(variable string, statements ...string) string {
	command := []string{`psql "$` + variable + `"`}
	for _, statement := range statements {
		command = append(command, `--command="`+strings.ReplaceAll(statement, `"`, `\"`)+`"`)
	}
	return strings.Join(command, " ")
}

// reload makes the server reload its settings.
const reload = "SELECT pg_reload_conf()"

// resetting says how to restore the default of a setting, which depends on where it was set.
func resetting(ctx context.Context, s *app.Services, name string) string {
	var made struct {
		Source    string `db:"source"`
		Statement string `db:"statement"`
	}
	err := s.DB.GetContext(ctx, &made, `
		SELECT source,
		       CASE source
		           WHEN 'global' THEN 'ALTER ROLE ALL'
		           WHEN 'database' THEN format('ALTER DATABASE %I', current_database())
		           WHEN 'user' THEN format('ALTER ROLE %I', session_user)
		           WHEN 'database user'
		               THEN format('ALTER ROLE %I IN DATABASE %I', session_user, current_database())
		           ELSE ''
		       END AS statement
		  FROM pg_catalog.pg_settings
		 WHERE name = $1`, name)
	switch {
	case err == nil && made.Source == "client":
		return "remove " + name + " from DATABASE_URL"
	case err == nil && made.Statement != "":
		// If the setting applies to the superuser's sessions too, it would refuse the change.
		return bySuperuser("SET default_transaction_read_only = off", made.Statement+" RESET "+name)
	}
	return bySuperuser("ALTER SYSTEM RESET "+name, reload) +
		" (if it is set in postgresql.conf or on the command line, remove it there)"
}

// examineServer checks whether the server accepts writes and keeps what it confirms.
func examineServer(ctx context.Context, s *app.Services) ([]Checkup, error) {
	written := Checkup{Name: "writable", Finding: OK, Detail: "The database accepts changes."}
	why, err := s.DB.Unwritable(ctx)
	if err == nil && why == "" {
		why, err = s.DB.TryWriting(ctx)
	}
	switch {
	case err != nil:
		written = Failure("writable", err, "See the log of the database.")
	case why != "":
		written.Finding, written.Detail = Failed, Sentence(errors.New(why))
		written.Remedy = "If it was set so: " + resetting(ctx, s, "default_transaction_read_only") +
			". If it is a standby: name the primary in DATABASE_URL, or all servers (host=a,b), or " +
			"promote it, " + bySuperuser("SELECT pg_promote()")
	}
	if why == postgres.DiskFull {
		written.Remedy = "Free space on the disk of the database, such as that held by replication " +
			"slots that nothing reads: " + psql("SELECT slot_name, restart_lsn FROM pg_replication_slots")
	}
	return []Checkup{written, examineSettings(ctx, s), examineConnections(ctx, s)}, nil
}

// examineSettings looks for settings that endanger confirmed data or the server itself, and for
// settings that cancel statements.
func examineSettings(ctx context.Context, s *app.Services) Checkup {
	var off, bounds []string
	err := s.DB.SelectContext(ctx, &off, `
		SELECT name
		  FROM pg_settings
		 WHERE setting = 'off'
		   AND name IN ('autovacuum', 'track_counts', 'fsync', 'full_page_writes',
		                'synchronous_commit')
		 UNION ALL
		SELECT 'autovacuum of ' || relname
		  FROM pg_class
		 WHERE relnamespace = 'public'::regnamespace
		   AND EXISTS (SELECT FROM unnest(reloptions) AS o WHERE o = 'autovacuum_enabled=false')
		 ORDER BY name`)
	if err == nil {
		err = s.DB.SelectContext(ctx, &bounds, `
			SELECT name
			  FROM pg_catalog.pg_settings
			 WHERE setting <> '0'
			   AND name IN ('statement_timeout', 'transaction_timeout')
			 ORDER BY name`)
	}
	found := Checkup{
		Name: "server", Finding: OK, Detail: "Autovacuum is on, and confirmed changes are kept.",
	}
	switch {
	case err != nil:
		return Failure("server", err, "Check that the user of DATABASE_URL may read pg_settings.")
	case len(off) > 0:
		found.Finding, found.Detail = Warning, "Off: "+strings.Join(off, ", ")+"."
		if s.Settings.Env.Hosted() {
			found.Finding = Failed
		}
		found.Remedy = capital(resetting(ctx, s, off[0]))
		if _, table, ofTable := strings.Cut(off[0], " of "); ofTable {
			found.Remedy = psql("ALTER TABLE " + table + " RESET (autovacuum_enabled)")
		}
		found.Remedy += ". Without autovacuum the queue gets slow; without the others, confirmed " +
			"changes may be lost."
	case len(bounds) > 0:
		found.Finding = Warning
		found.Detail = "The server ends what exceeds " + strings.Join(bounds, " and ") +
			": retention, bulk re-sends and reports may fail."
		found.Remedy = capital(resetting(ctx, s, bounds[0])) +
			". Drawbridge limits each request and job itself."
	}
	return found
}

const (
	// connectionsNeeded is how many connections a process opens at most, without those of a
	// worker's queue, and connectionsLeast how many it holds once it has started.
	connectionsNeeded, connectionsLeast = 41, 10
	// connectionsTight is how much of a limit may be in use, in percent.
	connectionsTight = 85
)

// examineConnections checks whether the server, the role and the database allow the connections
// that processes need.
func examineConnections(ctx context.Context, s *app.Services) Checkup {
	limits, err := s.DB.ConnectionLimits(ctx)
	if err != nil {
		return Failure("connections", err,
			"Check that the user of DATABASE_URL may read pg_stat_activity.")
	}
	tight := limits[0]
	found := Checkup{
		Name: "connections", Finding: OK,
		Detail: fmt.Sprintf("Of %d for %s, %d are in use.", tight.Most, tight, tight.Taken),
	}
	switch {
	case tight.Most < connectionsLeast || tight.Taken >= tight.Most:
		found.Finding = Failed
	case tight.Most < connectionsNeeded || tight.Taken*100 > tight.Most*connectionsTight:
		found.Finding = Warning
	default:
		return found
	}
	found.Detail += fmt.Sprintf(" One process opens up to %d, a worker some more for its queue.",
		connectionsNeeded)
	found.Remedy = capital(allowMore(tight)) + "; see Connections in the scaling guide."
	return found
}

// allowMore says how to raise a limit on connections.
func allowMore(limit postgres.ConnectionLimit) string {
	if limit.Statement == "" {
		return "stop a process, or raise max_connections and restart the server"
	}
	return "stop a process, or lift the limit, " +
		bySuperuser(limit.Statement+" CONNECTION LIMIT -1")
}
