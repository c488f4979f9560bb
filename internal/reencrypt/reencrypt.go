// Package reencrypt lists every column that holds encrypted values, and re-encrypts them when the
// key is replaced: secret.Keyring encrypts a value with AES-256-GCM.
//
// A key is replaced while the service runs:
//
//  1. Add the new key behind the one in use (DRAWBRIDGE_SECRETS_KEY=old,new) and
//     restart every process: from now on all of them decrypt values of both.
//  2. Put the new key in front (new,old) and restart them again: from now on all
//     of them encrypt with the new one.
//  3. Run drawbridge secrets rotate-key: it re-encrypts the values of the old key.
//  4. Run drawbridge secrets rotate-key --check: when no value names the old key
//     any more, remove it and restart. Keep it with the backups made before.
//
// Re-encryption takes no lock for longer than one row's update, replaces a value only if it is
// still the one that was read, and can be stopped and repeated at any time: it skips values that
// are done already.
package reencrypt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// Column is a column of encrypted values.
type Column struct {
	Table, Name string
	// Key is the primary key; its first column identifies the row that values are bound to.
	Key []string
	// BoundTable and BoundName are the column that values are bound to, where that is not the column
	// itself: values that move between columns are bound to the first.
	BoundTable, BoundName string
}

// Columns lists every column that holds encrypted values. A new one must be added here, so that its
// values survive the replacement of a key.
func Columns() []Column {
	subscription := []string{"subscription_uid"}
	return []Column{
		{"subscriptions", "secret_sealed", subscription, "subscriptions", "secret_sealed"},
		{"subscriptions", "previous_sealed", subscription, "subscriptions", "secret_sealed"},
		{"subscriptions", "headers_sealed", subscription, "subscriptions", "headers_sealed"},
		{
			"subscription_versions", "headers_sealed",
			[]string{"subscription_uid", "version"},
			"subscriptions", "headers_sealed",
		},
		{"second_factors", "secret_sealed", []string{"user_uid"}, "second_factors", "secret_sealed"},
		{"tls_certificates", "data_sealed", []string{"name"}, "tls_certificates", "data_sealed"},
		{"statement_keys", "private_sealed", []string{"key_id"}, "statement_keys", "private_sealed"},
	}
}

// String names the column.
func (c Column) String() string { return c.Table + "." + c.Name }

// Service re-encrypts values.
type Service struct {
	DB   *postgres.DB
	Keys *secret.Keyring
}

// Count is how many values of a column each key has encrypted.
type Count struct {
	Column string `json:"column"`
	// Keys counts values by the id of their key.
	Keys map[string]int `json:"keys"`
}

// Report is what was found, and what was done about it.
type Report struct {
	// Current is the id of the key that encrypts, Known are all keys that decrypt.
	Current string   `json:"current_key"`
	Known   []string `json:"known_keys"`
	Columns []Count  `json:"columns"`
	// Stale counts the values not encrypted with the current key, Lost those of them that no key of
	// the ring can decrypt.
	Stale int `json:"stale"`
	Lost  int `json:"lost"`
	// Reencrypted counts the values that Rotate re-encrypted, Skipped those that changed while it ran.
	Reencrypted int `json:"resealed"`
	Skipped     int `json:"skipped"`
	// Failed names the values that could not be decrypted.
	Failed []string `json:"failed"`
}

// Check counts the values by key and changes nothing.
func (s *Service) Check(ctx context.Context) (Report, error) {
	report := Report{
		Current: s.Keys.Current(), Known: s.Keys.IDs(), Columns: []Count{}, Failed: []string{},
	}
	for _, column := range Columns() {
		count, err := s.count(ctx, column)
		if err != nil {
			return report, err
		}
		report.Columns = append(report.Columns, count)
		for id, number := range count.Keys {
			if id != report.Current {
				report.Stale += number
			}
			if !slices.Contains(report.Known, id) {
				report.Lost += number
			}
		}
	}
	return report, nil
}

func (s *Service) count(ctx context.Context, column Column) (Count, error) {
	var rows []struct {
		Key   string `db:"key"`
		Count int    `db:"count"`
	}
	err := s.DB.SelectContext(ctx, &rows, fmt.Sprintf(`
		SELECT split_part(%[1]s, '.', 2) AS key, count(*) AS count
		  FROM %[2]s
		 WHERE %[1]s IS NOT NULL
		 GROUP BY 1`, pq.QuoteIdentifier(column.Name), pq.QuoteIdentifier(column.Table)))
	if err != nil {
		return Count{}, fmt.Errorf("counting the values of %s: %w", column, err)
	}
	count := Count{Column: column.String(), Keys: make(map[string]int, len(rows))}
	for _, row := range rows {
		count.Keys[row.Key] = row.Count
	}
	return count, nil
}

// batchSize is how many values one transaction replaces.
const batchSize = 200

// Rotate re-encrypts every value that is not encrypted with the current key, and returns what it
// did and the counts afterwards. Values that cannot be decrypted are named and left as they are.
func (s *Service) Rotate(ctx context.Context) (Report, error) {
	var done Report
	for _, column := range Columns() {
		err := s.read(ctx, column, s.Keys.Current(), func(batch []value) error {
			return s.replace(ctx, column, batch, &done)
		})
		if err != nil {
			return done, fmt.Errorf("encrypting %s again: %w", column, err)
		}
	}
	report, err := s.Check(ctx)
	report.Reencrypted, report.Skipped = done.Reencrypted, done.Skipped
	report.Failed = append(report.Failed, done.Failed...)
	return report, err
}

// value is an encrypted value, its replacement, and the key of its row.
type value struct {
	key           []string
	sealed, fresh string
}

// row names the value's row.
func (v value) row() string { return strings.Join(v.key, "/") }

// read passes the values of a column to use, a batch at a time, except those of the key named by
// except.
func (s *Service) read(
	ctx context.Context, column Column, except string, use func(batch []value) error,
) error {
	var key []string
	for _, name := range column.Key {
		key = append(key, pq.QuoteIdentifier(name)+"::text")
	}
	rows, err := s.DB.QueryxContext(ctx, fmt.Sprintf(`
		SELECT ARRAY[%s], %s
		  FROM %s
		 WHERE %[2]s IS NOT NULL
		   AND (split_part(%[2]s, '.', 2) <> $1 OR $1 = '')`,
		strings.Join(key, ", "), pq.QuoteIdentifier(column.Name),
		pq.QuoteIdentifier(column.Table)), except)
	if err != nil {
		return fmt.Errorf("reading values: %w", err)
	}
	defer rows.Close()
	for {
		var batch []value
		for len(batch) < batchSize && rows.Next() {
			var next value
			if err := rows.Scan((*pq.StringArray)(&next.key), &next.sealed); err != nil {
				return fmt.Errorf("reading a value: %w", err)
			}
			batch = append(batch, next)
		}
		if len(batch) == 0 {
			return rows.Err()
		}
		if err := use(batch); err != nil {
			return err
		}
	}
}

// replace encrypts the values of a batch with the current key and writes those that could be
// decrypted. A value that changed since it was read is left alone: it was encrypted then, with the
// current key of the process that wrote it.
func (s *Service) replace(ctx context.Context, column Column, batch []value, done *Report) error {
	var opened []value
	for _, old := range batch {
		plain, err := s.open(column, old)
		if err != nil {
			why := "it is damaged or was moved from another row"
			if errors.Is(err, secret.ErrUnknownKey) {
				why = "its key is not in DRAWBRIDGE_SECRETS_KEY"
			}
			done.Failed = append(done.Failed, fmt.Sprintf("%s of %s: %s", column, old.row(), why))
			continue
		}
		old.fresh = s.Keys.Seal(plain, column.BoundTable, column.BoundName, old.key[0])
		opened = append(opened, old)
	}
	replaced := 0
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		replaced = 0
		for _, old := range opened {
			var c postgres.Conditions
			set := pq.QuoteIdentifier(column.Name) + ` = ` + c.Bind(old.fresh)
			c.Add(pq.QuoteIdentifier(column.Name)+` = ?`, old.sealed)
			for i, name := range column.Key {
				c.Add(pq.QuoteIdentifier(name)+` = ?`, old.key[i])
			}
			count, err := postgres.Affected(tx.ExecContext(ctx,
				`UPDATE `+pq.QuoteIdentifier(column.Table)+` SET `+set+c.Where(), c.Args...))
			if err != nil {
				return fmt.Errorf("writing a value of row %s: %w", old.row(), err)
			}
			replaced += count
		}
		return nil
	})
	if err != nil {
		return err
	}
	done.Reencrypted += replaced
	done.Skipped += len(opened) - replaced
	return nil
}

// open decrypts a value of a column.
func (s *Service) open(column Column, sealed value) ([]byte, error) {
	return s.Keys.Open(sealed.sealed, column.BoundTable, column.BoundName, sealed.key[0])
}

// Used returns the ids of the keys that values name, sorted.
func (r Report) Used() []string {
	used := make(map[string]bool)
	for _, column := range r.Columns {
		for id := range column.Keys {
			used[id] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}
