package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// The subjects of items that are not about one subscription.
const (
	subjectQueue = "deliveries"
	subjectMails = "e-mails"

	subjectMailServer = "mail server"
)

// maxMails bounds the count of failed mails.
const maxMails = 1000

// watchOverdue looks for due deliveries that no worker sends.
func (s *Service) watchOverdue(ctx context.Context) error {
	overdue, err := s.Webhooks.Health.Overdue(ctx, s.AttemptLimit)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		return keep(ctx, tx, finding{
			kind: KindOverdue, subject: subjectQueue, severity: Problem, count: overdue.Count,
			detail: fmt.Sprintf("Due since %s and not sent. The workers are down, or there are too "+
				"few of them for what comes in.", minute(postgres.OrZero(overdue.Oldest))),
		}, "Nothing is overdue any more.")
	})
}

// watchStopped looks for subscriptions whose secret or headers could not be decrypted, and
// resumes those whose secret and headers can be by now.
func (s *Service) watchStopped(ctx context.Context) error {
	uids, err := s.Webhooks.Subscriptions.Stopped(ctx)
	errs := []error{err}
	for _, uid := range uids {
		err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			found, err := s.Webhooks.Subscriptions.Reopen(ctx, tx, uid)
			if err != nil || found.Unopened == "" {
				return err // review closes the item
			}
			_, err = raise(ctx, tx, finding{
				kind: KindUnopened, of: uid, severity: Problem, count: 1, detail: found.Unopened,
			})
			return err
		})
		if lending.ErrorCode(err) != lending.CodeNotFound { // else deleted meanwhile
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// watchSuccess looks for subscriptions at which nothing arrives.
func (s *Service) watchSuccess(ctx context.Context) error {
	found, err := s.Webhooks.Health.NeverSucceeded(ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		for _, one := range found {
			_, err := raise(ctx, tx, finding{
				kind: KindNeverSucceeded, of: one.Subscription, severity: Problem, count: one.Failures,
				detail: "Nothing has arrived since " + minute(one.Since) + ". Is the endpoint still in use?",
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// watchMails looks for mails that failed since the last such item was closed; if none has been
// closed yet, since 30 days before the first was opened.
func (s *Service) watchMails(ctx context.Context) error {
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		var since time.Time
		err := tx.GetContext(ctx, &since, `
			SELECT coalesce(max(closed_at), coalesce(min(opened_at), $2) - interval '30 days')
			  FROM attention_items
			 WHERE kind = $1`, string(KindMailFailed), tx.Now)
		if err != nil {
			return fmt.Errorf("reading when failed mails were last resolved: %w", err)
		}
		count, last, err := email.CountFailed(ctx, tx, since, maxMails)
		if err != nil {
			return err
		}
		return keep(ctx, tx, finding{
			kind: KindMailFailed, subject: subjectMails, severity: Problem, count: count,
			since: last, seen: last,
			detail: "E-mails could not be sent. Look at the server's answers, and re-send them.",
		}, "Every failed e-mail was re-sent.")
	})
}

// watchMailServer checks whether the mail server refuses us, or some e-mails because of us.
func (s *Service) watchMailServer(ctx context.Context) error {
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		found := finding{kind: KindMailRefused, subject: subjectMailServer, severity: Problem}
		stop, err := email.FindStop(ctx, tx)
		if err != nil {
			return err
		}
		if stop != nil {
			found.count, found.since = max(stop.Waiting, 1), stop.Since
			found.detail = "It refuses us, whatever the recipient, so all e-mails wait; none of them is " +
				"lost, and they go by themselves once it takes one. Its answer: " + stop.Answer
		} else if refused, err := email.FindRefused(ctx, tx); err != nil {
			return err
		} else if refused != nil {
			found.count, found.since = refused.Count, refused.Since
			found.detail = "It refuses some e-mails as if it had something against us. They wait and are " +
				"tried again by themselves, ever less often. Its last answer: " + refused.Answer
		}
		return keep(ctx, tx, found, "The mail server takes e-mails again.")
	})
}

// minute writes a time in a sentence.
func minute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }

// reviewTime bounds a review, so that the checks after it get their time in each run.
const reviewTime = 10 * time.Second

// openItem is an open item about a subscription, to be reviewed.
type openItem struct {
	Kind         Kind               `db:"kind"`
	Subject      string             `db:"subject"`
	Subscription uuid.UUID          `db:"subscription_uid"`
	OpenedAt     time.Time          `db:"opened_at"`
	State        subscription.State `db:"state"`
	Stopped      bool               `db:"stopped"`
	LastSuccess  *time.Time         `db:"last_success_at"`
}

// review closes items whose cause is gone. It may not get through all of them in its time, so it
// takes them in random order.
func (s *Service) review(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	var open []openItem
	err := s.DB.SelectContext(ctx, &open, `
		SELECT i.kind, i.subject, i.subscription_uid, i.opened_at, s.state, h.last_success_at,
		       s.stopped_at IS NOT NULL AS stopped
		  FROM attention_items i
		  JOIN subscriptions s USING (subscription_uid)
		  LEFT JOIN subscription_health h USING (subscription_uid)
		 WHERE i.closed_at IS NULL
		 ORDER BY random()`)
	if err != nil {
		return fmt.Errorf("listing open items: %w", err)
	}
	var errs []error
	for _, item := range open {
		why, err := s.whyGone(ctx, item)
		if err == nil && why != "" {
			err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
				return settle(ctx, tx, item.Kind, item.Subject, why)
			})
		}
		if err != nil && ctx.Err() != nil {
			slog.WarnContext(ctx, "the review of open items was cut short", "open", len(open))
			break // the next run continues
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// whyGone returns why the cause of an item is gone, or "" if it is not.
func (s *Service) whyGone(ctx context.Context, item openItem) (string, error) {
	switch {
	case item.State == subscription.StateDeleted:
		return "The subscription was deleted.", nil
	case item.Kind == KindFailing && item.State == subscription.StateActive:
		return "The subscription is active again.", nil
	case item.Kind == KindUnopened && !item.Stopped:
		return "Its secret and its headers open again.", nil
	case item.Kind == KindNeverSucceeded && item.LastSuccess != nil &&
		item.LastSuccess.After(item.OpenedAt):
		return "An attempt succeeded.", nil
	case item.Kind == KindUsedUp || item.Kind == KindUnknown:
		return s.whyResolved(ctx, item.Kind, item.Subscription, item.OpenedAt)
	}
	return "", nil
}

// whyResolved returns why a subscription's failures since a time are resolved, or "" if they are
// not.
func (s *Service) whyResolved(
	ctx context.Context, kind Kind, uid uuid.UUID, since time.Time,
) (string, error) {
	still, why := s.Webhooks.Health.StillUsedUp, "Every event was delivered after all."
	if kind == KindUnknown {
		still, why = s.Webhooks.Health.StillUnknown, "Every delivery has a known outcome by now."
	}
	open, err := still(ctx, uid, since)
	if err != nil || open {
		return "", err
	}
	return why, nil
}

// Probe probes the endpoints that are due and records the findings.
func (s *Service) Probe(ctx context.Context) (int, error) {
	records, err := s.Webhooks.Health.ProbeDue(ctx)
	errs := []error{err}
	for _, record := range records {
		if record.Subscription != uuid.Nil { // else the probe was not made
			errs = append(errs, s.NoteProbe(ctx, record))
		}
	}
	return len(records), errors.Join(errs...)
}

// failuresToNote is how many consecutive probes must fail: one may be chance.
const failuresToNote = 2

// NoteProbe opens or closes the items that the result of a probe concerns.
func (s *Service) NoteProbe(ctx context.Context, record health.ProbeRecord) error {
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if record.Class == "" || record.Failures >= failuresToNote {
			err := keep(ctx, tx, finding{
				kind: KindProbe, of: record.Subscription, severity: Problem, detail: record.Error,
				count: record.Failures, since: record.At, seen: record.At,
			}, "The endpoint can be reached again.")
			if err != nil {
				return err
			}
		}
		if record.Expires.IsZero() {
			return nil // the probe saw no certificate
		}
		ends := minute(record.Expires)
		one := finding{
			kind: KindCertificate, of: record.Subscription, severity: Warning, count: 1,
			since: record.At, seen: record.At,
			detail: "The certificate ends on " + ends + ", in " +
				strconv.Itoa(int(record.Expires.Sub(tx.Now)/(24*time.Hour))) + " days.",
		}
		switch sender.CertificateWarning(record.Expires, tx.Now) {
		case 0:
			one.count = 0
		case -1:
			one.severity, one.detail = Problem, "The certificate expired on "+ends+"."
		case 1:
			one.severity, one.detail = Problem, "The certificate ends on "+ends+", within a day."
		}
		return keep(ctx, tx, one, "The endpoint has a certificate that lasts.")
	})
}
