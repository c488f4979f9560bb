package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/apilog"
)

// maxCounted bounds the counts of a plan: an exact count of more is not worth
// its time.
const maxCounted = 100_000

// Plan is what a run would remove now.
type Plan struct {
	// Events, Deliveries (whose attempts lose their bodies) and Emails count rows
	// whose bodies are due, at most 100,000 of each; those under a legal hold are left out.
	Events     int `json:"event_bodies"`
	Deliveries int `json:"delivery_bodies"`
	Emails     int `json:"email_bodies"`
	// Bulks counts the bulk re-sends that are due with their lines.
	Bulks  int         `json:"bulk_resends"`
	Months []MonthPlan `json:"months"`
	// RequestDays counts the days of the log of API requests that are due, Requests what they
	// hold, at most 100,000.
	RequestDays int `json:"api_request_days"`
	Requests    int `json:"api_requests"`
	// LegalHolds counts the applications under a legal hold.
	LegalHolds int `json:"holds_in_force"`
}

// MonthPlan is a month whose metadata is due.
type MonthPlan struct {
	Month string `json:"month"`
	// Deliveries is the number of rows as the database estimates it.
	Deliveries int64 `json:"deliveries_estimated"`
	// LegallyHeld counts the deliveries that stay because of a legal hold, Open those that
	// stay because they are not final.
	LegallyHeld int `json:"deliveries_held"`
	Open        int `json:"deliveries_open"`
}

// Plan tells what a run under the settings, which need not be saved, would
// remove. Error: VALIDATION_ERROR for the settings.
func (s *Service) Plan(ctx context.Context, settings Settings) (Plan, error) {
	plan := Plan{Months: []MonthPlan{}}
	if err := settings.Check(); err != nil {
		return plan, err
	}
	now := s.DB.Now().UTC()
	bodies, emails := settings.bodyCutoff(now), settings.emailCutoff(now)
	for _, count := range []struct {
		into *int
		from string
		args []any
	}{
		{
			&plan.Events,
			due("events", "occurred_at", "events") + ` AND body_removed_at IS NULL`,
			[]any{bodies},
		},
		{&plan.Deliveries, due("deliveries", "created_at", "attempts"), []any{bodies}},
		{
			&plan.Emails,
			due("emails", "created_at", "emails") + ` AND content_removed_at IS NULL`,
			[]any{emails},
		},
		{&plan.Bulks, dueBulks, []any{settings.monthCutoff(now)}},
		{&plan.LegalHolds, `(` + legallyHeld + `) AS held WHERE true`, nil},
	} {
		err := s.DB.GetContext(ctx, count.into, fmt.Sprintf(
			`SELECT count(*) FROM (SELECT FROM %s LIMIT %d) AS counted`, count.from, maxCounted),
			count.args...)
		if err != nil {
			return plan, fmt.Errorf("counting what is due: %w", err)
		}
	}
	var err error
	plan.RequestDays, plan.Requests, err = (&apilog.Service{DB: s.DB}).CountDue(
		ctx, settings.RequestCutoff(now), maxCounted)
	if err != nil {
		return plan, err
	}
	err = s.planMonths(ctx, &plan, settings.monthCutoff(now))
	return plan, err
}

// planMonths tells which months are due and what stays of them.
func (s *Service) planMonths(ctx context.Context, plan *Plan, cutoff time.Time) error {
	months, err := s.months(ctx, cutoff)
	if err != nil {
		return err
	}
	for _, m := range months {
		planned, table := MonthPlan{Month: m.String()}, m.partition("deliveries")
		err := s.DB.QueryRowContext(ctx, fmt.Sprintf(`
			SELECT greatest(c.reltuples, 0)::bigint,
			       (SELECT count(*) FROM %[1]s WHERE application_uid IN (`+legallyHeld+`)),
			       (SELECT count(*) FROM %[1]s WHERE state IN ('pending', 'retrying'))
			  FROM pg_class c
			 WHERE c.oid = %[2]s::regclass`, pq.QuoteIdentifier(table), pq.QuoteLiteral(table)),
		).Scan(&planned.Deliveries, &planned.LegallyHeld, &planned.Open)
		if err != nil {
			return fmt.Errorf("looking at %s: %w", m, err)
		}
		plan.Months = append(plan.Months, planned)
	}
	return nil
}

// due selects the rows of a table that lie between a matter's mark and $1.
func due(table, column, name string) string {
	return fmt.Sprintf(`%s WHERE %s < $1 AND %s >= coalesce((
		SELECT done_until FROM retention_progress WHERE matter = %s), 'epoch')
		AND (application_uid IS NULL OR application_uid NOT IN (%s))`,
		table, column, column, pq.QuoteLiteral(name), legallyHeld)
}
