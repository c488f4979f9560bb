package statement

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// Report is the result of a run of Freeze.
type Report struct {
	// Days are the days whose statements are now complete.
	Days []string
	// Statements counts the statements made, Corrections the corrections of earlier days.
	Statements, Corrections int
}

// Freeze makes the statements of every day that is due, one day after the other, and then
// corrects earlier ones. The next run resumes where one ended early or failed for a day; any
// number of them may run concurrently.
func (s *Service) Freeze(ctx context.Context) (Report, error) {
	var report Report
	var begun []day
	err := s.DB.SelectContext(ctx, &begun, `
		SELECT day, begins, ends FROM statement_days WHERE finished_at IS NULL ORDER BY day`)
	if err != nil {
		return report, fmt.Errorf("loading the days without all their statements: %w", err)
	}
	var failed []error
	for _, on := range begun {
		failed = append(failed, s.freezeDay(ctx, on, &report))
	}
	for ctx.Err() == nil {
		on, due, err := s.begin(ctx)
		if err != nil {
			return report, errors.Join(append(failed, err)...)
		}
		if !due {
			break
		}
		failed = append(failed, s.freezeDay(ctx, on, &report))
	}
	failed = append(failed, s.correct(ctx, &report))
	return report, errors.Join(failed...)
}

// begin stores the next day if its statements are due. A day begins where the previous one
// ended, whatever changes were made to the calendar or time zone since.
func (s *Service) begin(ctx context.Context) (on day, due bool, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var found bool
		if on, found, err = s.next(ctx, tx); err != nil || !found {
			due = false
			return err
		}
		if due = !tx.Now.Before(on.Ends.Add(Grace)); !due {
			return nil
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO statement_days (day, begins, ends) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`, on.Day, on.Begins, on.Ends)
		if err != nil {
			return fmt.Errorf("beginning the statements of %s: %w", on.date(), err)
		}
		// Another process with another calendar may have begun it.
		err = tx.GetContext(ctx, &on, `
			SELECT day, begins, ends FROM statement_days ORDER BY day DESC LIMIT 1`)
		if err != nil {
			return fmt.Errorf("loading the newest day of statements: %w", err)
		}
		return nil
	})
	return on, due, err
}

// next returns the day after the newest one that has statements, or the first day if there is
// none yet. It finds none as long as there is no merchant.
func (s *Service) next(ctx context.Context, tx *postgres.Tx) (next day, found bool, err error) {
	var last day
	err = tx.GetContext(ctx, &last, `
		SELECT day, begins, ends FROM statement_days ORDER BY day DESC LIMIT 1`)
	if err == nil {
		date := s.Calendar.DayOf(last.Ends)
		for date.String() <= last.date() { // the zone moved west
			date = s.Calendar.Next(date)
		}
		return day{dayOf(date.String()), last.Ends, s.Calendar.End(date)}, true, nil
	}
	if !postgres.IsNoRows(err) {
		return day{}, false, fmt.Errorf("loading the newest day of statements: %w", err)
	}
	var first *time.Time
	if err := tx.GetContext(ctx, &first, `SELECT min(created_at) FROM merchants`); err != nil {
		return day{}, false, fmt.Errorf("looking for the first merchant: %w", err)
	}
	if first == nil {
		return day{}, false, nil
	}
	since := tx.Now.Add(-history)
	if first.After(since) {
		since = *first
	}
	date := s.Calendar.DayOf(since)
	return day{dayOf(date.String()), s.Calendar.Start(date), s.Calendar.End(date)}, true, nil
}

// dayOf parses a date to the form in which the database returns it.
func dayOf(date string) time.Time {
	at, _ := time.Parse(time.DateOnly, date) // a calendar's own format
	return at
}

// freezeDay makes the day's missing statements. A merchant who has a statement is done with the
// day, even if those of others fail.
func (s *Service) freezeDay(ctx context.Context, on day, report *Report) error {
	var failed []error
	var after uuid.UUID
	for {
		var merchants []uuid.UUID
		err := s.DB.SelectContext(ctx, &merchants, `
			SELECT m.merchant_uid
			  FROM merchants m
			 WHERE m.created_at < $1
			   AND m.merchant_uid > $2
			   AND NOT EXISTS (SELECT FROM statements s
			                    WHERE s.merchant_uid = m.merchant_uid AND s.day = $3)
			 ORDER BY m.merchant_uid
			 LIMIT $4`, on.Ends, after, on.Day, batch)
		if err != nil {
			return fmt.Errorf("listing the merchants without a statement of %s: %w", on.date(), err)
		}
		if len(merchants) == 0 {
			break
		}
		made, err := s.writeEach(ctx, on, merchants)
		report.Statements += made
		failed = append(failed, err)
		if errors.Is(err, errNoneWritten) {
			break
		}
		after = merchants[len(merchants)-1]
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	_, err := s.DB.ExecContext(ctx, `
		UPDATE statement_days SET finished_at = $2 WHERE day = $1 AND finished_at IS NULL`,
		on.Day, s.DB.Now())
	if err != nil {
		return fmt.Errorf("finishing the statements of %s: %w", on.date(), err)
	}
	report.Days = append(report.Days, on.date())
	return nil
}

// correct checks the statements of the days before the newest one, the oldest first, once for
// each newest day.
func (s *Service) correct(ctx context.Context, report *Report) error {
	var days []struct {
		day

		Newest time.Time `db:"newest"`
	}
	err := s.DB.SelectContext(ctx, &days, `
		WITH newest AS (
			SELECT day, ends FROM statement_days ORDER BY day DESC LIMIT 1
		)
		SELECT d.day, d.begins, d.ends, newest.day AS newest
		  FROM statement_days d
		 CROSS JOIN newest
		 WHERE d.ends > newest.ends - make_interval(secs => $1)
		   AND d.day < newest.day
		   AND (d.corrected_with IS NULL OR d.corrected_with < newest.day)
		 ORDER BY d.day`, correctionWindow.Seconds())
	if err != nil {
		return fmt.Errorf("listing the days to correct: %w", err)
	}
	var failed []error
	for _, on := range days {
		err := s.correctDay(ctx, on.day, on.Newest, report)
		failed = append(failed, err)
		if errors.Is(err, errNoneWritten) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

// correctDay makes the corrections of one day and records the newest day for which it did.
func (s *Service) correctDay(ctx context.Context, on day, newest time.Time, report *Report) error {
	outdated, err := s.outdated(ctx, on)
	if err != nil {
		return err
	}
	var failed []error
	for some := range slices.Chunk(outdated, batch) {
		made, err := s.writeEach(ctx, on, some)
		report.Corrections += made
		failed = append(failed, err)
		if errors.Is(err, errNoneWritten) {
			break
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	_, err = s.DB.ExecContext(ctx, `
		UPDATE statement_days
		   SET corrected_with = $2
		 WHERE day = $1
		   AND (corrected_with IS NULL OR corrected_with < $2)`, on.Day, newest)
	if err != nil {
		return fmt.Errorf("noting the corrections of %s: %w", on.date(), err)
	}
	return nil
}

// outdated returns the merchants whose statement of the day may be out of date, because a
// delivery had not arrived or the number of changes or events differs now, and those without a
// statement, who were created on a day that was frozen early by a clock that had run ahead.
func (s *Service) outdated(ctx context.Context, on day) (found []uuid.UUID, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		changes, err := s.Loans.CountChanges(ctx, tx, on.Begins, on.Ends)
		if err != nil {
			return err
		}
		var rows []struct {
			MerchantUID uuid.UUID `db:"merchant_uid"`
			Changes     int       `db:"changes"`
			Doubtful    bool      `db:"doubtful"`
		}
		err = tx.SelectContext(ctx, &rows, `
			WITH counted AS (
				SELECT merchant_uid, count(*) AS events
				  FROM events
				 WHERE occurred_at >= $2
				   AND occurred_at < $3
				   AND merchant_uid IS NOT NULL
				 GROUP BY merchant_uid
			), newest AS (
				SELECT DISTINCT ON (merchant_uid) merchant_uid, changes, events, unresolved
				  FROM statements
				 WHERE day = $1
				 ORDER BY merchant_uid DESC, version DESC
			)
			SELECT n.merchant_uid,
			       n.changes,
			       n.unresolved OR n.events <> coalesce(c.events, 0) AS doubtful
			  FROM newest n
			  LEFT JOIN counted c USING (merchant_uid)
			 UNION ALL
			SELECT m.merchant_uid, 0, true
			  FROM merchants m
			  JOIN statement_days d ON d.day = $1 AND d.finished_at IS NOT NULL
			 WHERE m.created_at < $3
			   AND NOT EXISTS (SELECT FROM newest n WHERE n.merchant_uid = m.merchant_uid)
			 ORDER BY merchant_uid`, on.Day, on.Begins, on.Ends)
		if err != nil {
			return fmt.Errorf("looking for statements of %s to correct: %w", on.date(), err)
		}
		found = nil
		for _, row := range rows {
			if row.Doubtful || row.Changes != changes[row.MerchantUID] {
				found = append(found, row.MerchantUID)
			}
		}
		return nil
	})
	return found, err
}

// errNoneWritten means that no statement could be written: the cause is not one merchant.
var errNoneWritten = errors.New("none of several statements could be written")

// writeEach is write, but a failure leaves out only the merchants for whom it occurs.
func (s *Service) writeEach(ctx context.Context, on day, merchants []uuid.UUID) (int, error) {
	made, err := s.write(ctx, on, merchants)
	if err == nil || len(merchants) == 1 {
		return made, err
	}
	var failed []error
	for _, merchant := range merchants {
		count, err := s.write(ctx, on, []uuid.UUID{merchant})
		if made += count; err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) == len(merchants) {
		return 0, errors.Join(errNoneWritten, failed[0])
	}
	return made, errors.Join(failed...)
}

// former is the newest stored version of a statement.
type former struct {
	MerchantUID uuid.UUID `db:"merchant_uid"`
	Version     int       `db:"version"`
	Content     []byte    `db:"content"`
	JSON        []byte    `db:"json"`
}

// write stores the statements whose content is new and returns their number. If two runs write
// the same version, the second does nothing. A panic becomes an error, so that it ends neither
// the other merchants' statements nor the other days.
func (s *Service) write(ctx context.Context, on day, merchants []uuid.UUID) (made int, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			made, err = 0, fmt.Errorf("writing the statements of %s for merchants %s: %v\n%s",
				on.date(), merchants, panicked, debug.Stack())
		}
	}()
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		made = 0
		signer, err := s.signer(ctx, tx)
		if err != nil {
			return err
		}
		var formers []former
		err = tx.SelectContext(ctx, &formers, `
			SELECT DISTINCT ON (merchant_uid) merchant_uid, version, content, json
			  FROM statements
			 WHERE day = $1
			   AND merchant_uid = ANY ($2)
			 ORDER BY merchant_uid, version DESC`, on.Day, pq.Array(merchants))
		if err != nil {
			return fmt.Errorf("loading the statements of %s: %w", on.date(), err)
		}
		contents, err := s.compose(ctx, tx, on, merchants)
		if err != nil {
			return err
		}
		editions := make(map[uuid.UUID]edition, len(merchants))
		for _, merchant := range merchants {
			editions[merchant] = edition{day: on, merchant: merchant, version: 1, at: tx.Now}
		}
		for _, old := range formers {
			if bytes.Equal(old.Content, contents[old.MerchantUID].digest()) {
				delete(editions, old.MerchantUID)
				continue
			}
			next, sum := editions[old.MerchantUID], sha256.Sum256(old.JSON)
			next.version = old.Version + 1
			next.replaces = &replaced{old.Version, hex.EncodeToString(sum[:])}
			editions[old.MerchantUID] = next
		}
		// In a fixed order, so that runs that write the same statements wait for each other.
		for _, merchant := range merchants {
			edition, changed := editions[merchant]
			if !changed {
				continue
			}
			count, err := insert(ctx, tx, edition, contents[merchant], signer)
			if err != nil {
				return err
			}
			made += count
		}
		return nil
	})
	return made, err
}

func insert(ctx context.Context, tx *postgres.Tx, e edition, c *content, by signer) (int, error) {
	json, csv := c.json(e, by.id), c.csv(e, by.id)
	count, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO statements (merchant_uid, day, version, frozen_at, key_id, json, json_signature,
		                        csv, csv_signature, content, disbursements, changes, events,
		                        gross, fee, net, unresolved)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
		ON CONFLICT DO NOTHING`,
		e.merchant, e.Day, e.version, e.at, by.id, json, by.sign(json), csv, by.sign(csv),
		c.digest(), len(c.Disbursements), c.changes(), len(c.Events),
		c.Totals.Gross, c.Totals.Fee, c.Totals.Net, c.unresolved()))
	if err != nil {
		return 0, fmt.Errorf("storing the statement of %s for merchant %s: %w",
			e.date(), e.merchant, err)
	}
	return count, nil
}
