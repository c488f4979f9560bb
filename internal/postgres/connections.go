package postgres

import (
	"context"
	"fmt"
)

// ConnectionLimit is a bound on the connections of clients.
type ConnectionLimit struct {
	// Kind is what the limit applies to: server, role or database.
	Kind string `db:"kind"`
	Name string `db:"name"`
	// Statement is the beginning of the statement that changes the limit, empty for the server's.
	Statement string `db:"statement"`
	Most      int    `db:"most"`
	Taken     int    `db:"taken"`
}

// String says whose limit it is.
func (l ConnectionLimit) String() string {
	if l.Name == "" {
		return "the " + l.Kind
	}
	return "the " + l.Kind + " " + l.Name
}

// ConnectionLimitsQuery reads the limits on the connections that this role may open to this
// database, and how many of each are taken. Superusers are bound by the server's limit alone.
const ConnectionLimitsQuery = `
	SELECT l.kind, l.name, l.statement, l.most, count(a.pid) AS taken
	  FROM (SELECT 'server' AS kind, '' AS name, '' AS statement,
	               current_setting('max_connections')::bigint AS most
	         UNION ALL
	        SELECT 'role', rolname, format('ALTER ROLE %I', rolname), rolconnlimit
	          FROM pg_roles
	         WHERE rolname = session_user
	           AND rolconnlimit >= 0
	           AND NOT rolsuper
	         UNION ALL
	        SELECT 'database', d.datname, format('ALTER DATABASE %I', d.datname), d.datconnlimit
	          FROM pg_catalog.pg_database d, pg_roles r
	         WHERE d.datname = current_database()
	           AND d.datconnlimit >= 0
	           AND r.rolname = session_user
	           AND NOT r.rolsuper) AS l
	  LEFT JOIN pg_catalog.pg_stat_activity a
	    ON a.datid IS NOT NULL
	   AND coalesce(a.backend_type, 'client backend') = 'client backend'
	   AND CASE l.kind WHEN 'role' THEN a.usename = l.name
	                   WHEN 'database' THEN a.datname = l.name
	                   ELSE true END
	 GROUP BY l.kind, l.name, l.statement, l.most`

// ConnectionLimits lists the limits, first the one with the fewest connections left.
func (db *DB) ConnectionLimits(ctx context.Context) ([]ConnectionLimit, error) {
	var limits []ConnectionLimit
	err := db.SelectContext(ctx, &limits, ConnectionLimitsQuery+` ORDER BY l.most - count(a.pid)`)
	if err != nil {
		return nil, fmt.Errorf("reading the limits of connections: %w", err)
	}
	return limits, nil
}
