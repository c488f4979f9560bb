package postgres

import (
	"context"
	"database/sql"
	"reflect"

	"github.com/jmoiron/sqlx"
)

// The methods below wrap those of sqlx.DB and count the time for which they wait for a connection.
// The connections count the time of the statements.

// BeginTxx begins a transaction.
func (db *DB) BeginTxx(ctx context.Context, options *sql.TxOptions) (*sqlx.Tx, error) {
	defer Waiting(ctx)()
	return db.DB.BeginTxx(ctx, options)
}

// ExecContext runs a statement that returns no rows.
func (db *DB) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	defer Waiting(ctx)()
	return db.DB.ExecContext(ctx, text, args...)
}

// GetContext reads the one row of a query into dest.
func (db *DB) GetContext(ctx context.Context, dest any, text string, args ...any) error {
	defer Waiting(ctx)()
	return db.read(ctx, func(ctx context.Context, from *sqlx.DB) error {
		return from.GetContext(ctx, dest, text, args...)
	})
}

// PingContext checks that the server responds.
func (db *DB) PingContext(ctx context.Context) error {
	defer Waiting(ctx)()
	return db.DB.PingContext(ctx)
}

// QueryRowContext runs a query for one row.
func (db *DB) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	defer Waiting(ctx)()
	return db.DB.QueryRowContext(ctx, text, args...)
}

// SelectContext reads the rows of a query into dest.
func (db *DB) SelectContext(ctx context.Context, dest any, text string, args ...any) error {
	defer Waiting(ctx)()
	if db.choose(ctx) == nil {
		return db.DB.SelectContext(ctx, dest, text, args...)
	}
	rows := reflect.Indirect(reflect.ValueOf(dest))
	had := rows.Len()
	return db.read(ctx, func(ctx context.Context, from *sqlx.DB) error {
		rows.SetLen(had) // without what a server sent that then broke off
		return from.SelectContext(ctx, dest, text, args...)
	})
}
