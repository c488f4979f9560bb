package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/seed"
)

// besideCmd measures how API requests and deliveries are affected by long work that runs at the
// same time: a transaction that stays open, or the removal of very many rows by retention.
type besideCmd struct {
	What       string        `arg:"" enum:"transaction,retention" help:"What runs during the load: transaction or retention."`
	Open       time.Duration `help:"How long the transaction stays open." default:"20m"`
	Deliveries int           `help:"Number of deliveries to remove, each with an event and one or two attempts." default:"1500000"`
	Before     time.Duration `help:"How long to measure before it begins." default:"3m"`
	Share      float64       `help:"Share of the sustainable load to apply." default:"0.5"`
	Peak       time.Duration `help:"How long to measure the peak." default:"30s"`
	Out        string        `help:"Write the machine and each figure to a file, one JSON document per line." placeholder:"FILE"`
	Dir        string        `help:"Keep the data in this folder." default:"${tmp}"`
}

// Validate refuses options that cannot be measured.
func (c *besideCmd) Validate() error {
	if c.Open <= 0 || c.Before <= 0 || c.Peak <= 0 || c.Deliveries <= 0 ||
		c.Share <= 0 || c.Share > 1 {
		return errors.New("times and numbers must be positive, and -share at most 1")
	}
	return nil
}

// seedDays is how far back the data to be removed goes: of twenty months seven are older than the
// thirteen that are kept, and all but three have their bodies removed.
const seedDays = 610

// Run applies a share of the load that the machine carries, and compares times before and during
// the work. It fails if a request does, or if deliveries take twice as long.
func (c *besideCmd) Run(w *world) (err error) {
	var open cleanup
	defer open.run(&err)
	s, err := startSampled(w, &open, c.Dir)
	if err != nil {
		return err
	}
	b := &beside{besideCmd: c, world: w, sampler: s, report: report{Machine: s.machine}}
	if c.What == "retention" {
		if err := b.fill(w.ctx); err != nil {
			return err
		}
	}
	carried, err := s.sustainableRate(w, c.Peak)
	if err != nil {
		return err
	}
	rate := carried * c.Share
	w.say("offering %.0f calls/s", rate)
	if err := s.traffic.offer(w.ctx, rate, b.measure); err != nil {
		return err
	}
	fmt.Fprintf(w.out, "%.0f calls/s were offered\n", rate)
	err = errors.Join(b.report.print(w.out), b.report.write(c.Out))
	for what, count := range s.traffic.failed() {
		err = errors.Join(err, fmt.Errorf("%d times %s: %w", count, what, errFailed))
	}
	if b.slower {
		err = errors.Join(err, errFailed)
	}
	return err
}

// beside is one such measurement.
type beside struct {
	*besideCmd
	*world
	*sampler

	report report
	before seen
	slower bool
}

// seen is how long requests and deliveries took during a period.
type seen struct{ calls, lags timing }

// measure compares the times before and during the work.
func (b *beside) measure(ctx context.Context) (err error) {
	b.say("measuring for %s before", b.Before)
	b.before, err = b.watch(ctx, func() error { return sleep(ctx, b.Before) })
	if err != nil {
		return err
	}
	if b.What != "retention" {
		return b.transaction(ctx)
	}
	// Retention keeps less than by default.
	_, err = b.program.run(ctx, "retention", "set", "--metadata-months", "13",
		"--body-days", "90", "--email-body-days", "90")
	if err != nil {
		return err
	}
	began := time.Now()
	now, err := b.watch(ctx, func() error {
		said, err := b.program.run(ctx, "retention", "run")
		b.say("%s", strings.TrimSpace(string(said)))
		return err
	})
	if err != nil {
		return err
	}
	b.compare("for "+time.Since(began).Round(time.Second).String(), now)
	return nil
}

// watch returns the times of requests and deliveries until do has ended.
func (b *beside) watch(ctx context.Context, do func() error) (now seen, err error) {
	b.traffic.times() // drops earlier times
	var from, to time.Time
	const clock = `SELECT clock_timestamp()`
	if err := b.db.GetContext(ctx, &from, clock); err != nil {
		return seen{}, fmt.Errorf("asking for the time: %w", err)
	}
	if err := do(); err != nil {
		return seen{}, err
	}
	for kind, took := range b.traffic.times() {
		if !strings.HasPrefix(kind, "console") {
			now.calls.each = append(now.calls.each, took...)
		}
	}
	if err := b.db.GetContext(ctx, &to, clock); err != nil {
		return seen{}, fmt.Errorf("asking for the time: %w", err)
	}
	// Deliveries made in the last seconds may not have been sent yet.
	var lags []float64
	err = b.db.SelectContext(ctx, &lags, `
		SELECT extract(epoch FROM coalesce(a.started_at, now()) - d.created_at)::float
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		  LEFT JOIN attempts a ON a.delivery_uid = d.delivery_uid
		                      AND a.delivery_created_at = d.created_at
		                      AND a.number = 1
		 WHERE d.created_at >= $1
		   AND d.created_at < $2
		   AND s.url LIKE '%/good'`, from, to.Add(-5*time.Second))
	if err != nil {
		return seen{}, fmt.Errorf("reading when deliveries began: %w", err)
	}
	for _, lag := range lags {
		now.lags.each = append(now.lags.each, time.Duration(lag*float64(time.Second)))
	}
	return now, nil
}

// compare adds the rows for a period to the table.
func (b *beside) compare(name string, now seen) {
	const before = "before, in the same run"
	section := "beside " + b.What
	b.report.addTimes(row{Section: section, Name: name + ", calls", FloorName: before},
		now.calls, b.before.calls, share{"p50", 0.5, ""}, share{"p99", 0.99, ""})
	b.report.addTimes(
		row{Section: section, Name: name + ", from the change to its webhook", FloorName: before},
		now.lags, b.before.lags, share{"p50", 0.5, "< 2x the floor"}, share{"p99", 0.99, ""})
	b.slower = b.slower || now.lags.quantile(0.5) >= 2*b.before.lags.quantile(0.5)
}

// transaction keeps a transaction with a snapshot open, in which nothing else happens.
func (b *beside) transaction(ctx context.Context) (err error) {
	// Not through the program's pool, whose sessions end a transaction that is idle for a minute.
	db, err := sql.Open("postgres", b.program.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("opening a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT FROM deliveries LIMIT 1`); err != nil {
		return fmt.Errorf("opening a transaction: %w", err)
	}
	const parts = 4
	for i := range parts {
		now, err := b.watch(ctx, func() error { return sleep(ctx, b.Open/parts) })
		if err != nil {
			return err
		}
		until := b.Open * time.Duration(i+1) / parts
		b.say("the transaction has been open for %s", until)
		b.compare("open for "+until.String(), now)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("the transaction was not open until the end: %w", err)
	}
	now, err := b.watch(ctx, func() error { return sleep(ctx, b.Before) })
	b.compare("after its end", now)
	return err
}

// fill creates the data to be removed; nothing of it is due yet.
func (b *beside) fill(ctx context.Context) error {
	_, err := b.program.run(ctx, "retention", "set", "--metadata-months", "120",
		"--body-days", "3000", "--email-body-days", "3000")
	if err != nil {
		return err
	}
	total, err := seed.Fill(ctx, b.db, seed.Plan{
		Deliveries: b.Deliveries, Attempts: b.Deliveries * 4 / 3, Partners: 20, Days: seedDays,
		Progress: func(made int) { b.say("%d deliveries are there", made) },
	})
	if err != nil {
		return err
	}
	b.say("%d deliveries, %d attempts", total.Deliveries, total.Attempts)
	// The next attempts of some are years away; the wait after the peak must not include them.
	_, err = b.db.ExecContext(ctx, `
		UPDATE deliveries
		   SET state = 'failed',
		       next_attempt_at = NULL,
		       queued = false
		 WHERE state = 'retrying'`)
	if err != nil {
		return fmt.Errorf("ending the deliveries that wait: %w", err)
	}
	return settle(ctx, b.db)
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
		return nil
	}
}
