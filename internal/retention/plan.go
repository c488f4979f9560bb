package retention

import (
	"context"
	"fmt"

	"drawbridge/internal/apilog"
)

// maxCounted bounds the counts of a plan: counting more exactly is not worth the time.
const maxCounted = 100_000

// Plan is what a run would remove now.
type Plan struct {
	// Events, Deliveries (whose attempts lose their bodies) and Emails count rows whose bodies are
	// due, at most 100,000 of each; rows under a legal hold are left out.
	Events     int `json:"event_bodies"`
	Deliveries int `json:"delivery_bodies"`
	Emails     int `json:"email_bodies"`
	// Bulks counts the bulk re-sends that are due together with their lines.
	Bulks  int         `json:"bulk_resends"`
	Months []MonthPlan `json:"months"`
	// RequestDays counts the days of the API request log that are due, Requests their entries, at most
	// 100,000.
	RequestDays int `json:"api_request_days"`
	Requests    int `json:"api_requests"`
	// LegalHolds counts the applications under a legal hold.
	LegalHolds int `json:"holds_in_force"`
}

// MonthPlan is a month whose metadata is due.
type MonthPlan struct {
	Month string `json:"month"`
	// Deliveries is the number of rows as estimated by the database.
	Deliveries int64 `db:"deliveries" json:"deliveries_estimated"`
	// LegallyHeld counts the deliveries that stay because of a legal hold, Open those that
	// stay because they are not final.
	LegallyHeld int `db:"held" json:"deliveries_held"`
	Open        int `db:"open" json:"deliveries_open"`
}

// Plan returns what a run under the settings, which need not be saved, would remove. Error:
// VALIDATION_ERROR for the settings.
func (s *Service) Plan(ctx context.Context, settings Settings) (Plan, error) {
	plan := Plan{Months: []MonthPlan{}}
	if err := settings.Check(); err != nil {
		return plan, err
	}
	now := s.DB.Now().UTC()
	bodies, emails := settings.bodyCutoff(now), settings.emailCutoff(now)
	cutoff := settings.monthCutoff(now)
	for _, count := range []struct {
		into *int
		from string
		args []any
	}{
		{&plan.Events, due("events", "occurred_at", "body_removed_at IS NULL"), []any{"events", bodies}},
		{&plan.Deliveries, due("deliveries", "created_at", "true"), []any{"attempts", bodies}},
		{
			&plan.Emails, due("emails", "created_at", "content_removed_at IS NULL"),
			[]any{"emails", emails},
		},
		{&plan.Bulks, dueBulks, []any{cutoff}},
		{&plan.LegalHolds, `(` + legallyHeld + `) AS held`, nil},
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
	months, err := s.months(ctx, cutoff)
	if err != nil {
		return plan, err
	}
	for _, m := range months {
		planned := MonthPlan{Month: m.String()}
		err := s.DB.GetContext(ctx, &planned, m.in(`
			SELECT greatest(reltuples, 0)::bigint AS deliveries,
			       (SELECT count(*)
			          FROM deliveries{m}
			         WHERE application_uid IN (`+legallyHeld+`)) AS held,
			       (SELECT count(*) FROM deliveries{m} WHERE state IN ('pending', 'retrying')) AS open
			  FROM pg_class
			 WHERE oid = 'deliveries{m}'::regclass`))
		if err != nil {
			return plan, fmt.Errorf("looking at %s: %w", m, err)
		}
		plan.Months = append(plan.Months, planned)
	}
	return plan, nil
}

// due selects the rows of a table between the mark of matter $1 and $2.
func due(table, column, condition string) string {
	return fmt.Sprintf(`%[1]s WHERE %[2]s < $2 AND %[2]s >= coalesce((
		SELECT done_until FROM retention_progress WHERE matter = $1), 'epoch')
		AND (application_uid IS NULL OR application_uid NOT IN (%[4]s)) AND %[3]s`,
		table, column, condition, legallyHeld)
}
