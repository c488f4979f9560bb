// Package seed fills a development database with as many deliveries as a busy lender has after
// months, so that lists can be inspected and measured at that size. It writes rows with
// set-based statements: no event is published and nothing is sent, and all of its data belongs
// to partners of its own.
package seed

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// Made reports whether the database contains what Fill makes.
func Made(ctx context.Context, db *postgres.DB) (made bool, err error) {
	err = db.GetContext(ctx, &made,
		`SELECT EXISTS (SELECT FROM clients
		                WHERE client_id LIKE 'dbc_5eed%'
		                   OR client_id LIKE 'seed-client-%') -- as earlier releases made them`)
	return made, err
}

const (
	// batch is how many deliveries one statement makes.
	batch = 50_000
	// defaultDays is how far back the data goes by default.
	defaultDays = 182
	// perApplication is the average number of deliveries per application.
	perApplication = 16
	// perLoan is that number where almost all applications become loans.
	perLoan = 12
	// spareApplications makes enough applications even for a few deliveries.
	spareApplications = 8
	// settled is how long ago the last event was, so that its three attempts are over.
	settled = 12 * time.Minute
	// perResend is how many deliveries there are per re-send.
	perResend = 250
	// perRequest, perEntry, perAlert and perBulk are how many deliveries there are per API request,
	// audit entry, alert and bulk re-send.
	perRequest, perEntry, perAlert, perBulk = 4, 10, 200, 4000
	// requestDays is how far back the log of API requests goes.
	requestDays = 30
)

// Plan says how much to make.
type Plan struct {
	// Deliveries and Attempts are totals. A delivery has one to three attempts, so Attempts is at
	// least Deliveries and at most 1.8 times as many.
	Deliveries, Attempts int
	// Partners is the number of partners that share them, unevenly.
	Partners int
	// Days is how far back they go, 0 for half a year.
	Days int
	// Ended leaves out deliveries that wait for another attempt, which would be due in years so
	// that nothing is sent. Almost every application then becomes a loan, and the open alerts
	// follow from the traffic alone: the data is for looking at, not for measuring. It is made
	// completely or not at all, and has none of the seed's marks.
	Ended bool
	// Progress, if not nil, is called with the number of deliveries made.
	Progress func(deliveries int)
}

// Totals counts the rows after Fill.
type Totals struct {
	Partners      int `db:"partners" json:"partners"`
	Subscriptions int `db:"subscriptions" json:"subscriptions"`
	Applications  int `db:"applications" json:"applications"`
	Deliveries    int `db:"deliveries" json:"deliveries"`
	Attempts      int `db:"attempts" json:"attempts"`
	Emails        int `db:"emails" json:"emails"`
	Loans         int `db:"loans" json:"loans"`
	Requests      int `db:"requests" json:"api_requests"`
	AuditEntries  int `db:"audit_entries" json:"audit_entries"`
}

// Fill makes what the plan says, and updates the planner's statistics.
func Fill(ctx context.Context, db *postgres.DB, plan Plan) (Totals, error) {
	now := db.Now().UTC()
	since := now.AddDate(0, 0, -cmp.Or(plan.Days, defaultDays))
	_, err := db.ExecContext(ctx, `SELECT drawbridge_make_partitions($1, $2, 3)`, since, now)
	if err != nil {
		return Totals{}, fmt.Errorf("making partitions: %w", err)
	}
	defer func() { _, _ = db.ExecContext(context.WithoutCancel(ctx), dropScaffold) }()
	for _, part := range plan.parts(since) {
		err := db.InTx(ctx, func(tx *postgres.Tx) error { return part(ctx, tx) })
		if err != nil {
			return Totals{}, err
		}
	}
	// VACUUM also makes the visibility map, which a database has after months of running.
	if _, err := db.ExecContext(ctx, `VACUUM (ANALYZE)`); err != nil {
		return Totals{}, fmt.Errorf("analysing: %w", err)
	}
	return count(ctx, db)
}

// part is the work of one transaction.
type part func(ctx context.Context, tx *postgres.Tx) error

// parts returns the work of the plan, in order: one transaction with Ended, so that the data is
// never seen half made, else one per batch.
func (p Plan) parts(since time.Time) []part {
	parts := []part{func(ctx context.Context, tx *postgres.Tx) error {
		return p.foundation(ctx, tx, since)
	}}
	for made := 0; made < p.Deliveries; made += batch {
		parts = append(parts, func(ctx context.Context, tx *postgres.Tx) error {
			return p.deliver(ctx, tx, since, made)
		})
	}
	parts = append(parts,
		func(ctx context.Context, tx *postgres.Tx) error { return p.others(ctx, tx, since) },
		func(ctx context.Context, tx *postgres.Tx) error {
			if err := tally(ctx, tx); err != nil {
				return err
			}
			return run(ctx, tx, step{"alarms", makeAlarms, []any{tx.Now}})
		})
	if !p.Ended {
		return parts
	}
	return []part{func(ctx context.Context, tx *postgres.Tx) error {
		for _, part := range parts {
			if err := part(ctx, tx); err != nil {
				return err
			}
		}
		return run(ctx, tx, unmark...)
	}}
}

// chance seeds the random numbers of a transaction with a value from 0 to 1, each of which gives
// another fixed series: a plan makes the same rows every time, so that measurements and tests
// with them can be compared.
const chance = `SELECT setseed($1)`

// step is a statement of the seed and the name of what it makes.
type step struct {
	what, statement string
	args            []any
}

func run(ctx context.Context, tx *postgres.Tx, steps ...step) error {
	for _, step := range steps {
		if _, err := tx.ExecContext(ctx, step.statement, step.args...); err != nil {
			return fmt.Errorf("making %s: %w", step.what, err)
		}
	}
	return nil
}

// foundation makes partners, merchants, subscriptions, applications with their events, their loans,
// and e-mails.
func (p Plan) foundation(ctx context.Context, tx *postgres.Tx, since time.Time) error {
	applications := p.Deliveries/perApplication + spareApplications
	// The length of an application's life. Few applications may be unfinished at the end of the
	// span, because their events would be missing from the total. Where almost all become loans,
	// there are more applications than needed.
	lifetime := min(1, tx.Now.Sub(since).Hours()/24/60)
	if p.Ended {
		applications, lifetime = p.Deliveries/perLoan, 1
	}
	events := p.Deliveries - p.Deliveries/perResend
	return run(ctx, tx, []step{
		{"chance", chance, []any{0}},
		{"partners", makePartners, []any{p.Partners, since}},
		{"merchants", makeMerchants, []any{since}},
		{"subscriptions", makeSubscriptions, []any{since}},
		{"applications", makeApplications, []any{applications, since, tx.Now}},
		{"e-mails", makeEmails, []any{tx.Now}},
		{"clients", makeClients, []any{since}},
		{"products", makeProducts, []any{since}},
		{"scaffold", makeScaffold, nil},
		{"what happens", makeLife, []any{
			events, tx.Now.Add(-settled), p.Ended, lifetime,
		}},
		{"scaffold's index", indexLife, nil},
		{"loans", makeLoans, []any{tx.Now}},
		{"tasks", makeTasks, nil},
		{"statuses", moveApplications, nil},
	}...)
}

// others makes what the console lists besides deliveries, in proportion to them.
func (p Plan) others(ctx context.Context, tx *postgres.Tx, since time.Time) error {
	share := func(per int) int { return max(p.Deliveries/per, 1) }
	return run(ctx, tx, []step{
		{"chance", chance, []any{1}},
		{"days of requests", makeRequestDays, []any{requestDays, tx.Now}},
		{"requests", makeRequests, []any{
			share(perRequest), tx.Now.AddDate(0, 0, -requestDays), tx.Now,
		}},
		{"entries of the audit log", makeAudit, []any{share(perEntry), since, tx.Now}},
		{"alerts", makeAlerts, []any{share(perAlert), since, tx.Now, p.Ended}},
		{"bulk re-sends", makeBulks, []any{share(perBulk), since, tx.Now}},
	}...)
}

// deliver makes one batch of events, deliveries and attempts, after those made.
func (p Plan) deliver(ctx context.Context, tx *postgres.Tx, since time.Time, made int) error {
	// A share of the deliveries uses up three attempts, another share needs two.
	more := float64(p.Attempts)/float64(p.Deliveries) - 1
	failed := min(0.10, more/3)
	again := more - 2*failed
	// The statement makes every key itself, so checking each again is unnecessary and would take
	// most of the time. Only a superuser may skip the checks.
	err := tx.Savepoint(ctx, func() error {
		_, err := tx.ExecContext(ctx, `SET LOCAL session_replication_role = replica`)
		return err
	})
	if err != nil && !postgres.IsForbidden(err) {
		return fmt.Errorf("leaving out checks: %w", err)
	}
	// How long failing endpoints have failed: some days of half a year, where there is little
	// traffic in a day, and some hours of data to be looked at.
	failing := tx.Now.Sub(since) / 40
	if p.Ended {
		failing = tx.Now.Sub(since) / 100
	}
	count := min(batch, p.Deliveries-made)
	resends := count / perResend
	err = run(ctx, tx,
		step{"chance", chance, []any{float64(made) / float64(p.Deliveries)}},
		step{"places in the feed", lockFeed, nil},
		step{"deliveries", makeDeliveries, []any{
			made - made/perResend, count - resends, tx.Now, failed, again, p.Ended,
			tx.Now.Add(-failing),
		}},
		step{"re-sends", makeResends, []any{resends, since, tx.Now}},
		step{"checks", withChecks, nil},
	)
	if err == nil && p.Progress != nil {
		p.Progress(made + count)
	}
	return err
}

// withChecks restores skipped checks for the rest of a transaction.
const withChecks = `
	SELECT set_config('session_replication_role', 'origin', true)
	 WHERE current_setting('session_replication_role') = 'replica'`

func count(ctx context.Context, db *postgres.DB) (Totals, error) {
	var totals Totals
	err := db.GetContext(ctx, &totals, `
		SELECT (SELECT count(*) FROM partners) AS partners,
		       (SELECT count(*) FROM subscriptions) AS subscriptions,
		       (SELECT count(*) FROM applications) AS applications,
		       (SELECT count(*) FROM deliveries) AS deliveries,
		       (SELECT count(*) FROM attempts) AS attempts,
		       (SELECT count(*) FROM emails) AS emails,
		       (SELECT count(*) FROM loans) AS loans,
		       (SELECT count(*) FROM api_requests) AS requests,
		       (SELECT count(*) FROM audit_log) AS audit_entries`)
	if err != nil {
		return Totals{}, fmt.Errorf("counting what was made: %w", err)
	}
	return totals, nil
}
