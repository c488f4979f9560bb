// Package retention removes data whose retention has ended, and keeps what a legal hold covers.
//
// There are two retention times. Bodies (of events, the headers and bodies of attempts, the text of
// e-mails) are removed after days: row by row, in small batches with pauses, each day about as much
// as one day produced, so that vacuum has steady work and never a backlog. The rest, the metadata,
// is removed after months, a month at a time, by dropping the month's partitions.
//
// A month rarely goes completely: rows of applications under a legal hold stay, and so do
// deliveries that are not final, and events that were re-sent later. These survivors are copied
// into new, small tables first, without blocking anyone. Then one short transaction puts them in
// the place of the month's partitions. Reads need not know: what was kept is where it always was.
//
// That works without freezing the month because nothing in it changes any more except its open
// deliveries, which are copied again under the lock. An event that old gets no new deliveries: its
// body was removed long before, and delivery.Service.Resend refuses an event without one; a month
// with events in the outbox stays as it is. A hold that is placed or released meanwhile makes the
// month start over.
//
// The exchange takes its locks with a short timeout and gives them up together: nobody waits longer
// than it takes to get them all, which lockMonth bounds, plus the exchange itself, a few
// milliseconds.
package retention

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// Service applies the retention settings and keeps the legal holds.
type Service struct {
	DB *postgres.DB
}

// Report is the result of a run.
type Report struct {
	// Events, Attempts and Emails count the rows whose bodies were removed.
	Events   int `json:"event_bodies"`
	Attempts int `json:"attempt_bodies"`
	Emails   int `json:"email_bodies"`
	// Months are the months whose metadata was removed, such as "2025-10".
	Months []string `json:"months"`
	// Bulks counts the bulk re-sends that were removed with their lines.
	Bulks int `json:"bulk_resends"`
	// LeftToOwner are months that are due and stay, since the tables belong to another role, which has
	// to run the removal.
	LeftToOwner []string `json:"months_left_to_owner"`
	// Swept counts the released legal holds whose rows were removed late.
	Swept int `json:"released_holds_swept"`
	// Busy reports that another run was under way, so that this one did nothing.
	Busy bool `json:"busy"`
}

// Run removes what is due until it is done or ctx ends; the next run continues with the rest. Only
// one run works at a time, whatever the number of processes. A step that fails does not keep the
// others from running.
func (s *Service) Run(ctx context.Context) (Report, error) {
	report := Report{Months: []string{}, LeftToOwner: []string{}}
	settings, err := s.Settings(ctx)
	if err != nil {
		return report, err
	}
	release, err := s.claim(ctx)
	if err != nil {
		return report, err
	}
	if release == nil {
		report.Busy = true
		return report, nil
	}
	defer release()
	now := s.DB.Now().UTC()
	bodies, months := settings.bodyCutoff(now), settings.monthCutoff(now)
	err = errors.Join(
		s.inBatches(ctx, "bodies of events", &report.Events, bodyKinds[0].before(bodies)),
		s.inBatches(ctx, "bodies of attempts", &report.Attempts, bodyKinds[1].before(bodies)),
		s.inBatches(ctx, "bodies of emails", &report.Emails,
			bodyKinds[2].before(settings.emailCutoff(now))),
		s.inBatches(ctx, "bodies that were needed for longer", &report.Events, removeLeftovers),
		s.inBatches(ctx, "the text of e-mails that were late", &report.Emails, removeLateMails),
		s.removeMonths(ctx, months, &report),
		s.inBatches(ctx, "bulk re-sends", &report.Bulks, bulksBefore(months)),
		s.inBatches(ctx, "what a released legal hold had kept", &report.Swept,
			settings.sweepReleased(now)),
		s.inBatches(ctx, "old entries of the feed", new(int), placesBefore(months)),
	)
	return report, err
}

// batch removes at most one transaction's worth, and returns how much, and whether there is more.
type batch func(ctx context.Context, tx *postgres.Tx) (count int, more bool, err error)

// lockHolds keeps others from placing or releasing a hold before the transaction ends, so that a
// hold in force never misses what it should have kept. If the lock is not free within a second, the
// next run tries again.
const lockHolds = `SET LOCAL lock_timeout = '1s'; LOCK TABLE application_holds IN SHARE MODE`

// inBatches removes batch after batch and counts the removed rows. Between batches it rests for as
// long as the last one took.
func (s *Service) inBatches(ctx context.Context, what string, removed *int, next batch) error {
	for {
		began := time.Now()
		var count int
		var more bool
		err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(ctx, lockHolds)
			if err != nil {
				return fmt.Errorf("locking the holds: %w", err)
			}
			count, more, err = next(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("removing %s: %w", what, err)
		}
		*removed += count
		if !more || !postgres.Pause(ctx, time.Since(began)) {
			return nil
		}
	}
}

// claim makes this the only run, for as long as its connection lives. It returns nil when there is
// another.
func (s *Service) claim(ctx context.Context) (release func(), err error) {
	conn, err := s.DB.Connx(ctx)
	if err != nil {
		return nil, fmt.Errorf("claiming the retention run: %w", err)
	}
	var mine bool
	err = conn.GetContext(ctx, &mine, `SELECT pg_try_advisory_lock(hashtext('drawbridge_retention'))`)
	if err != nil || !mine {
		return nil, errors.Join(err, conn.Close())
	}
	return func() {
		_, err := conn.ExecContext(context.WithoutCancel(ctx),
			`SELECT pg_advisory_unlock(hashtext('drawbridge_retention'))`)
		if err != nil {
			// A connection that may still hold the lock must not go back to the pool.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
		_ = conn.Close()
	}, nil
}
