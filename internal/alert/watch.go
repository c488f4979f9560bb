package alert

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/subscription"
)

// Tally updates the summaries, opens items for failures and mails the partners' contacts. It
// returns how many outcomes it moved.
func (s *Service) Tally(ctx context.Context) (int, error) {
	moved := 0
	for {
		var tallied health.Tallied
		err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			var err error
			if tallied, err = s.Webhooks.Health.Tally(ctx, tx); err != nil {
				return err
			}
			for _, trouble := range tallied.Trouble {
				if err := s.note(ctx, tx, trouble); err != nil {
					return err
				}
			}
			return nil
		})
		moved += tallied.Outcomes
		if err != nil {
			return moved, err
		}
		if !tallied.More {
			return moved, s.mailContacts(ctx)
		}
	}
}

// note opens or increments the items for the trouble that a tally found.
func (s *Service) note(ctx context.Context, tx *postgres.Tx, trouble health.Trouble) error {
	item := finding{
		of: trouble.Subscription, severity: Problem, adds: true,
		since: trouble.FirstSeen, seen: trouble.LastSeen,
	}
	if trouble.Unknown > 0 {
		unknown := item
		unknown.kind, unknown.severity, unknown.count = KindUnknown, Warning, trouble.Unknown
		unknown.detail = "A process stopped during an attempt; whether the endpoint got the event " +
			"is not known."
		if _, err := raise(ctx, tx, unknown); err != nil {
			return err
		}
	}
	if trouble.UsedUp == 0 {
		return nil
	}
	item.kind, item.count = KindUsedUp, trouble.UsedUp
	item.detail = "Every attempt failed. Nothing is sent again by itself."
	opened, err := raise(ctx, tx, item)
	if err != nil || !opened {
		return err
	}
	// Mail only about the first delivery that failed for good; the next mail comes only after the
	// item was closed. While a subscription is failing the operators have been alerted already.
	failure, err := s.Webhooks.Health.DescribeFailure(ctx, tx, trouble.Delivery)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return nil // removed with an old partition
	}
	if err != nil || failure.State != subscription.StateActive {
		return err
	}
	return s.Emails.ScheduleAlert(ctx, tx, email.KindAttemptsUsedUp, map[string]string{
		email.ParamPartnerName:     failure.PartnerName,
		email.ParamSubscriptionUID: failure.Subscription.String(),
		email.ParamSubscription:    failure.SubscriptionName,
		email.ParamURL:             failure.URL,
		email.ParamDeliveryUID:     trouble.Delivery.String(),
		email.ParamEvent:           failure.Event,
		email.ParamApplicationUID:  failure.Application,
		email.ParamLastError:       failure.Error,
	}, alertRecipients(failure.AlertEmail)...)
}

func alertRecipients(address string) []string {
	if address == "" {
		return nil
	}
	return []string{address}
}

// Watch changes the states of subscriptions as their health requires, opens items for what is
// missing, and closes those whose cause is gone. Every check runs even if another fails. The
// checks that may use up all of the time come last, since their mails go to many.
func (s *Service) Watch(ctx context.Context) error {
	candidates, err := s.Webhooks.Health.Candidates(ctx)
	errs := []error{err}
	for _, uid := range candidates {
		errs = append(errs, s.judge(ctx, uid))
	}
	return errors.Join(append(errs,
		s.watchOverdue(ctx), s.watchStopped(ctx), s.watchSuccess(ctx), s.watchMails(ctx),
		s.watchMailServer(ctx), s.review(ctx), s.Webhooks.Health.PruneHealth(ctx),
		s.watchDraws(ctx), s.watchDecisions(ctx))...)
}

// judge changes one subscription's state, with its version, audit entry, mails and item, all or
// nothing.
func (s *Service) judge(ctx context.Context, uid uuid.UUID) error {
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		change, changed, err := s.Webhooks.Health.Judge(ctx, tx, uid)
		if err != nil || !changed {
			return err
		}
		err = operator.Audit(ctx, tx, operator.Entry{
			Actor: health.System, Action: "subscription." + string(change.To),
			SubjectKind: "subscription", Subject: change.Subscription.String(),
			Reason: fmt.Sprintf("%d attempts failed since %s", change.Failures,
				change.Since.UTC().Format(time.RFC3339)),
			Before: map[string]any{"state": change.From}, After: map[string]any{"state": change.To},
		})
		if err != nil {
			return err
		}
		kind := email.KindSubscriptionFailing
		if change.To == subscription.StateActive {
			kind = email.KindSubscriptionRecovered
		}
		err = s.Emails.ScheduleAlert(ctx, tx, kind, map[string]string{
			email.ParamPartnerName:     change.PartnerName,
			email.ParamSubscriptionUID: change.Subscription.String(),
			email.ParamSubscription:    change.SubscriptionName,
			email.ParamURL:             change.URL,
			email.ParamSince:           change.Since.UTC().Format(time.RFC3339),
			email.ParamFailures:        strconv.Itoa(change.Failures),
			email.ParamLastError:       change.LastError,
			email.ParamPaused:          strconv.FormatBool(change.To == subscription.StatePaused),
		}, alertRecipients(change.AlertEmail)...)
		if err != nil {
			return err
		}
		if change.To == subscription.StateActive {
			return settle(ctx, tx, KindFailing, uid.String(), "An attempt succeeded again.")
		}
		detail := "Every attempt has failed for a while. Sending goes on."
		if change.To == subscription.StatePaused {
			detail = "Every attempt had failed for a while, so it was paused as its settings ask."
		}
		_, err = raise(ctx, tx, finding{
			kind: KindFailing, of: uid, severity: Problem, count: change.Failures,
			detail: detail + " Last error: " + change.LastError,
		})
		return err
	})
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return nil // deleted meanwhile
	}
	return err
}
