package alert

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/email"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/health"
)

// recoverable is how far back the recovery that a mail prepares goes: a day less than is
// allowed, for readers who open the mail tomorrow.
const recoverable = bulk.MaxRecoveryAge - 24*time.Hour

// mailContacts mails the partners' contacts about deliveries that failed for good, one mail for
// each subscription.
func (s *Service) mailContacts(ctx context.Context) error {
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		unreported, err := s.Webhooks.Health.TakeUnreported(ctx, tx)
		for len(unreported) > 0 && err == nil {
			count := 1
			for count < len(unreported) && unreported[count].Subscription == unreported[0].Subscription {
				count++
			}
			err = s.mailContact(ctx, tx, unreported[:count])
			unreported = unreported[count:]
		}
		return err
	})
}

// mailContact mails what failed at one subscription, by event kind.
func (s *Service) mailContact(
	ctx context.Context, tx *postgres.Tx, kinds []health.Unreported,
) error {
	of, failures, since := kinds[0], int64(0), kinds[0].Since
	var lines strings.Builder
	for _, kind := range kinds {
		failures += kind.Failures
		if kind.Since.Before(since) {
			since = kind.Since
		}
		fmt.Fprintf(&lines, "%s: %d\n", kind.Event, kind.Failures)
	}
	params := map[string]string{
		email.ParamPartnerName:     of.PartnerName,
		email.ParamSubscriptionUID: of.Subscription.String(),
		email.ParamSubscription:    of.Name,
		email.ParamURL:             of.URL,
		email.ParamFailures:        strconv.FormatInt(failures, 10),
		email.ParamKinds:           lines.String(),
		email.ParamSince:           moment(since),
	}
	if earliest := tx.Now.Add(-recoverable); since.Before(earliest) {
		params[email.ParamRecoverSince] = moment(earliest)
	}
	if of.Deleted {
		params[email.ParamDeleted] = "true"
	}
	err := s.Emails.Schedule(ctx, tx, email.Message{
		Kind: email.KindDeliveriesFailed, ToName: of.PartnerName, ToAddress: of.Contact,
		Params: params,
	})
	if err != nil {
		return fmt.Errorf("telling the contact of %s: %w", of.PartnerName, err)
	}
	return nil
}

// moment formats a time as the mail and the API do.
func moment(at time.Time) string { return at.UTC().Truncate(time.Second).Format(time.RFC3339) }
