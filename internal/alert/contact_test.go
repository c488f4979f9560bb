package alert_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/subscription"
)

// contact sets the partner's contact.
func (h *harness) contact(address string) {
	h.Helper()
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Partners.UpdatePartner(ctx, tx, h.Partner, partner.Change{Contact: &address})
		return err
	})
}

// contactMails returns the contact mails after the first seen ones, oldest first.
func (h *harness) contactMails(seen int) []email.Detail {
	h.Helper()
	var uids []uuid.UUID
	h.must(h.DB.SelectContext(h.Context(), &uids, `
		SELECT email_uid FROM emails WHERE kind = 'deliveries_failed'
		 ORDER BY created_at, email_uid OFFSET $1`, seen))
	mails := make([]email.Detail, 0, len(uids))
	for _, uid := range uids {
		mail, err := email.Get(h.Context(), h.DB, uid)
		h.must(err)
		mails = append(mails, mail)
	}
	return mails
}

// However many processes run, a partner's contact gets one mail an hour for each subscription,
// which reports everything that used up its attempts since the last one.
func TestContactIsTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contact("it@sunvolt.example")
	other := h.Subscribe(t, func(s *subscription.Settings) { s.URL = h.receiver.URL + "/other" }).UID
	first := h.clock.Now()
	h.status.Store(500)
	h.publish()
	h.publish()
	h.finish()
	var all sync.WaitGroup
	for range 4 {
		all.Go(h.look)
	}
	all.Wait()
	mails := h.contactMails(0)
	if len(mails) != 2 {
		t.Fatalf("%d mails, want one for each subscription", len(mails))
	}
	subscriptions := map[string]bool{}
	for _, mail := range mails {
		subscriptions[mail.Params[email.ParamSubscriptionUID]] = true
		if mail.ToAddress != "it@sunvolt.example" || mail.Params[email.ParamFailures] != "2" ||
			mail.Params[email.ParamKinds] != "task.created: 2\n" ||
			mail.Params[email.ParamSince] != first.UTC().Format(time.RFC3339) {
			t.Errorf("mail to %s of %v", mail.ToAddress, mail.Params)
		}
	}
	if !subscriptions[h.subscription.String()] || !subscriptions[other.String()] {
		t.Errorf("mails of %v", subscriptions)
	}

	h.exec(`UPDATE subscriptions SET state = 'deleted' WHERE subscription_uid = $1`, other)
	h.fail(1)
	if h.look(); len(h.contactMails(2)) != 1 {
		t.Fatalf("%d mails after the hour", len(h.contactMails(2)))
	}
	h.publish()
	h.finish()
	if h.look(); len(h.contactMails(3)) != 0 {
		t.Error("a second mail within the hour")
	}
	h.move(time.Hour - 24*time.Minute)
	h.look()
	if mails := h.contactMails(3); len(mails) != 1 || mails[0].Params[email.ParamFailures] != "1" {
		t.Errorf("what failed meanwhile is in %v", mails)
	}
}

// The recovery that a mail prepares is accepted, also a day later and however old the events
// are; the mail still reports the first of them.
func TestContactCanRecover(t *testing.T) {
	t.Parallel()
	for age, bounded := range map[time.Duration]bool{
		28 * 24 * time.Hour: false, 40 * 24 * time.Hour: true,
	} {
		h := newHarness(t)
		h.contact("it@sunvolt.example")
		h.status.Store(500)
		h.publish()
		first := h.clock.Now().Add(-age)
		h.finish()
		h.exec(`UPDATE deliveries SET event_at = $1`, first)
		h.look()
		mails := h.contactMails(0)
		if len(mails) != 1 {
			t.Fatalf("%d mails", len(mails))
		}
		params := mails[0].Params
		if want := first.UTC().Format(time.RFC3339); params[email.ParamSince] != want {
			t.Errorf("the first event is of %s, want %s", params[email.ParamSince], want)
		}
		given, ok := params[email.ParamRecoverSince]
		if ok != bounded {
			t.Errorf("after %s a recovery is to begin at %q", age, given)
		}
		since, err := time.Parse(time.RFC3339, cmp.Or(given, params[email.ParamSince]))
		h.must(err)
		h.move(23 * time.Hour)
		h.do(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Webhooks.Bulk.Recover(ctx, tx, bulk.Recovery{
				PartnerUID: h.Partner, SubscriptionUID: h.subscription,
				Merchants: []uuid.UUID{h.Merchant}, Since: since, By: "client",
			})
			return err
		})
	}
}

// Failures before a subscription was deleted are reported, and that they cannot be sent again.
func TestContactOfADeletedSubscriptionIsTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contact("it@sunvolt.example")
	h.status.Store(500)
	h.publish()
	h.finish()
	h.exec(`UPDATE subscriptions SET state = 'deleted' WHERE subscription_uid = $1`, h.subscription)
	h.look()
	mails := h.contactMails(0)
	if len(mails) != 1 || mails[0].Params[email.ParamDeleted] != "true" ||
		mails[0].Params[email.ParamFailures] != "1" {
		t.Errorf("mails %+v", mails)
	}
}

// A partner without a contact, a test, and an event that arrives in the end cause no mail; a new
// contact is mailed about failures from then on.
func TestContactIsNotTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(1)
	h.look()
	h.contact("it@sunvolt.example")
	h.look()
	h.status.Store(500)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Deliveries.Test(ctx, tx, h.subscription, lending.EventTaskCreated)
		return err
	})
	h.finish()
	h.publish()
	h.work()
	h.status.Store(200)
	h.finish()
	h.look()
	if mails := h.contactMails(0); len(mails) != 0 {
		t.Errorf("told of %v", mails[0].Params)
	}
	h.fail(1)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Health.Tally(ctx, tx)
		return err
	})
	h.contact("")
	h.look()
	h.contact("it@sunvolt.example")
	h.look()
	if mails := h.contactMails(0); len(mails) != 0 {
		t.Errorf("told of what failed before: %v", mails[0].Params)
	}
	h.fail(1)
	h.look()
	if mails := h.contactMails(0); len(mails) != 1 {
		t.Errorf("%d mails of what failed then", len(mails))
	}
}
