package email_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
)

// TestMadeGood: a failure no longer counts once a mail with its text was sent, whichever mail
// re-sent which.
func TestMadeGood(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.task("1"))
	ends := func(uid uuid.UUID, state string) {
		o.now = o.now.Add(time.Minute)
		o.exec(t, `UPDATE emails SET state = $1, next_attempt_at = NULL, finished_at = $2
			WHERE email_uid = $3`, state, o.now, uid)
	}
	resend := func(uid uuid.UUID) (made uuid.UUID) {
		o.now = o.now.Add(time.Minute)
		o.inTx(t, func(tx *postgres.Tx) (err error) {
			made, err = o.service.Resend(t.Context(), tx, uid, "sam", "")
			return err
		})
		return made
	}
	open := func() int {
		count, err := email.Count(t.Context(), o.db, email.Filter{Open: true}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	first := o.only(t).EmailUID
	ends(first, "failed")
	second := resend(first)
	if got := open(); got != 1 {
		t.Errorf("%d are open while the re-send waits", got)
	}
	ends(second, "failed")
	third, fourth := resend(second), resend(first)
	ends(fourth, "failed")
	if got := open(); got != 3 {
		t.Errorf("%d are open before one was sent", got)
	}
	ends(third, "sent")
	if got := open(); got != 0 {
		t.Errorf("%d are open after one was sent", got)
	}
	for _, uid := range []uuid.UUID{first, second, fourth} {
		if got := o.get(t, uid).MadeGoodBy.UUID; got != third {
			t.Errorf("%s was made good by %s, want %s", uid, got, third)
		}
	}
	ends(resend(third), "failed") // a re-send was requested again
	if got := open(); got != 1 {
		t.Errorf("%d are open after a re-send of what was sent failed", got)
	}
	filter := email.Filter{State: email.StateFailed}
	matching, left, err := email.CountLeftOut(t.Context(), o.db, filter, 100)
	found, err2 := email.FindResendable(t.Context(), o.db, filter, 100)
	if err != nil || err2 != nil || matching != 4 || left[email.LeftOutResent] != 3 ||
		len(found) != 1 {
		t.Errorf("of %d, %v are left out and %d re-sent: %v, %v", matching, left, len(found), err, err2)
	}
}
