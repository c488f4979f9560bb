package postgres

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/jmoiron/sqlx"
)

// engineConnections bounds the engine's pool. Its statements carry the work of many callers, so a
// few connections are enough.
const engineConnections = 8

// planByIndex are the settings of sessions whose statements are few, fixed, and reach every row by
// an index, however large the tables are: one generic plan serves all arguments, joins run in the
// order in which they are written, and no other kind of plan is allowed, such as one made while a
// table was empty.
var planByIndex = map[string]string{
	"plan_cache_mode":     "force_generic_plan",
	"join_collapse_limit": "1",
	"from_collapse_limit": "1",
	"enable_seqscan":      "off",
	"enable_hashjoin":     "off",
	"enable_mergejoin":    "off",
	"jit":                 "off",
}

// PlanByIndex returns the statements that give a session the engine's planner settings.
func PlanByIndex() string {
	var text strings.Builder
	for name, value := range planByIndex {
		text.WriteString("SET " + name + " = " + value + ";")
	}
	return text.String()
}

// Engine is the pool for statements that do the work of many callers at once. Its connections plan
// each statement once, by indexes only, and give up waiting for a lock after a tenth of a second.
// Behind a pooler, which allows no such settings, it is the common pool.
func (db *DB) Engine() *sqlx.DB {
	if db.engine == nil {
		return db.DB
	}
	return db.engine
}

func (db *DB) openEngine(chosen options) error {
	if chosen.unprepared {
		return nil
	}
	address, err := url.Parse(db.url)
	if err != nil {
		return fmt.Errorf("reading the database URL: %w", err)
	}
	query := address.Query()
	for name, value := range planByIndex {
		query.Set(name, value)
	}
	// A locked row must not hold up the many callers that share a statement.
	query.Set("lock_timeout", "100ms")
	address.RawQuery = query.Encode()
	db.engine, err = openPool(address.String(), chosen, engineConnections)
	return err
}
