package email_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	message := b.welcome()
	message.ToName = "Ana\r\nBcc: all@evil.test"
	message.Params["nul"] = "a\x00b"
	b.schedule(t, message)
	mail := b.only(t)
	if mail.State != email.StateQueued || mail.Kind != email.KindWelcome ||
		mail.ApplicationUID.UUID != b.application || mail.ToAddress != "ana@example.com" ||
		mail.ToName != "Ana Bcc: all@evil.test" || mail.Params[email.ParamFirstName] != "Ana" ||
		mail.NextAttemptAt == nil || mail.FinishedAt != nil {
		t.Errorf("the log says %+v", mail)
	}
	jobs := b.queue(t)
	if len(jobs) != 1 || jobs[0].SendArgs != (email.SendArgs{EmailUID: mail.EmailUID, Attempt: 1}) {
		t.Errorf("the queue holds %+v", jobs)
	}
}

// TestSchedulePaused is the first row of the table in specification section
// 3.2: nothing is sent, then or later.
func TestSchedulePaused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, kind := range []email.Kind{email.KindWelcome, email.KindStipulation, email.KindTask} {
		message := b.welcome()
		message.Kind, message.Paused = kind, true
		b.schedule(t, message)
	}
	mails := b.all(t)
	if len(mails) != 3 {
		t.Fatalf("%d mails are logged", len(mails))
	}
	for _, mail := range mails {
		if mail.State != email.StateSuppressed || !strings.Contains(mail.Reason, "paused") ||
			mail.FinishedAt == nil {
			t.Errorf("the log says %+v", mail)
		}
	}
	if jobs := b.queue(t); len(jobs) != 0 {
		t.Errorf("the queue holds %+v", jobs)
	}
	// A suppressed welcome mail does not prevent the real one.
	b.schedule(t, b.welcome())
	if jobs := b.queue(t); len(jobs) != 1 {
		t.Errorf("after the offer was accepted the queue holds %+v", jobs)
	}
}

func TestScheduleRollsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	undo := errors.New("undo")
	err := b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
		return errors.Join(undo, b.service.Schedule(t.Context(), tx, b.welcome()))
	})
	if !errors.Is(err, undo) || len(b.all(t)) != 0 || len(b.queue(t)) != 0 {
		t.Errorf("%v left %d mails and %d jobs", err, len(b.all(t)), len(b.queue(t)))
	}
}

func TestScheduleRefusesAddresses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, address := range []string{"", "ana", "ana@example.com\r\nDATA", "zoë@example.com"} {
		message := b.welcome()
		message.ToAddress = address
		err := b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
			return b.service.Schedule(t.Context(), tx, message)
		})
		if lending.ErrorCode(err) != lending.CodeValidation {
			t.Errorf("%q: %v", address, err)
		}
	}
	if mails := b.all(t); len(mails) != 0 {
		t.Errorf("the log holds %+v", mails)
	}
}

// TestWelcomeOnce: whether repeated or concurrent, a borrower gets one welcome mail, and that of
// another application does not prevent it.
func TestWelcomeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			err := b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
				return b.service.Schedule(t.Context(), tx, b.welcome())
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if mails, jobs := b.all(t), b.queue(t); len(mails) != 1 || len(jobs) != 1 {
		t.Fatalf("%d mails and %d jobs", len(mails), len(jobs))
	}
	other := b.welcome()
	other.ApplicationUID = b.newApplication(t)
	b.schedule(t, other, b.task("one"), b.task("two"))
	if mails, jobs := b.all(t), b.queue(t); len(mails) != 4 || len(jobs) != 4 {
		t.Errorf("%d mails and %d jobs", len(mails), len(jobs))
	}
}

func TestScheduleAlert(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, user := range []struct{ email, role, disabled string }{
		{"op@meadow.example", "operator", "null"},
		{"admin@meadow.example", "admin", "null"},
		{"support@meadow.example", "support", "null"},
		{"gone@meadow.example", "operator", "now()"},
		{"not an address", "admin", "null"},
	} {
		b.exec(t, `INSERT INTO users (user_uid, email, name, role, password_hash, disabled_at, created_at)
		           VALUES ($1, $2, 'N. N.', $3, '', `+user.disabled+`, now())`,
			uuid.New(), user.email, user.role)
	}
	recipients := func() []string {
		t.Helper()
		b.exec(t, `DELETE FROM emails`)
		b.inTx(t, func(tx *postgres.Tx) error {
			return b.service.ScheduleAlert(t.Context(), tx, email.KindSubscriptionFailing,
				map[string]string{email.ParamURL: "https://hooks.example"})
		})
		var found []string
		for _, mail := range b.all(t) {
			if mail.Kind != email.KindSubscriptionFailing || mail.ApplicationUID.Valid ||
				mail.State != email.StateQueued {
				t.Errorf("the log says %+v", mail)
			}
			found = append(found, mail.ToAddress)
		}
		slices.Sort(found)
		return found
	}
	want := []string{"admin@meadow.example", "op@meadow.example"}
	if got := recipients(); !slices.Equal(got, want) {
		t.Errorf("without settings alerts go to %q, want %q", got, want)
	}
	b.inTx(t, func(tx *postgres.Tx) error {
		settings := validSettings()
		settings.AlertTo = []string{"oncall@meadow.example"}
		return email.SaveSettings(t.Context(), tx, settings, "admin")
	})
	want = []string{"oncall@meadow.example"}
	if got := recipients(); !slices.Equal(got, want) {
		t.Errorf("with settings alerts go to %q, want %q", got, want)
	}
}

func TestResend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	b.deliver(t, b.mailSender(t, ""), b.last(t))
	first := b.only(t)
	var again uuid.UUID
	b.inTx(t, func(tx *postgres.Tx) error {
		var err error
		again, err = b.service.Resend(t.Context(), tx, first.EmailUID, "support@meadow.example", "asked")
		return err
	})
	mail := b.get(t, again)
	if mail.State != email.StateQueued || mail.ResendOf.UUID != first.EmailUID ||
		mail.ResentBy != "support@meadow.example" || mail.ResendReason != "asked" ||
		mail.Text != first.Text || mail.HTML != first.HTML || mail.Subject != first.Subject ||
		mail.ToAddress != first.ToAddress || mail.MessageID != "" || mail.AttemptCount != 0 {
		t.Errorf("the re-send is %+v", mail)
	}
	if job := b.last(t); job != (email.SendArgs{EmailUID: again, Attempt: 1}) {
		t.Errorf("its job is %+v", job)
	}
	resends := b.get(t, first.EmailUID).Resends
	if len(resends) != 1 || resends[0].EmailUID != again {
		t.Errorf("the first mail knows of %+v", resends)
	}
}

func TestResendRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	paused := b.task("paused")
	paused.Paused = true
	b.schedule(t, b.welcome(), paused)
	uid := make(map[email.State]uuid.UUID)
	for _, mail := range b.all(t) {
		uid[mail.State] = mail.EmailUID
	}
	for _, test := range []struct {
		name          string
		uid           uuid.UUID
		actor, reason string
		want          lending.Code
	}{
		{"unknown", uuid.New(), "ana", "", lending.CodeNotFound},
		{"still queued", uid[email.StateQueued], "ana", "", lending.CodeInvalidState},
		{"suppressed", uid[email.StateSuppressed], "ana", "", lending.CodeInvalidState},
		{"nobody", uid[email.StateQueued], "", "", lending.CodeValidation},
		{"long reason", uid[email.StateQueued], "ana", strings.Repeat("x", 501), lending.CodeValidation},
		{
			"500 characters", uid[email.StateQueued], "ana", strings.Repeat("ж", 500),
			lending.CodeInvalidState,
		},
	} {
		err := b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
			_, err := b.service.Resend(t.Context(), tx, test.uid, test.actor, test.reason)
			return err
		})
		if lending.ErrorCode(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if mails := b.all(t); len(mails) != 2 {
		t.Errorf("%d mails are logged", len(mails))
	}
}

// TestResendMatchingLeavesOutWhatABackupGaveUp: a restore gives up mails that may have been sent
// before, so that nobody gets one twice unless it is re-sent by name.
func TestResendMatchingLeavesOutWhatABackupGaveUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := b.service.GiveUpQueued(t.Context(), tx, tx.Now)
		return err
	})
	for _, filter := range []email.Filter{{}, {State: email.StateNotSent}} {
		_, left, err := email.CountLeftOut(t.Context(), b.db, filter, 100)
		if err != nil || left[email.LeftOutUnknown] != 1 {
			t.Errorf("left out of %+v: %v, %v", filter, left, err)
		}
		b.inTx(t, func(tx *postgres.Tx) error {
			resent, err := b.service.ResendMatching(t.Context(), tx, filter, "ana", "the server is back")
			if len(resent) != 0 {
				t.Errorf("%+v re-sends %v", filter, resent)
			}
			return err
		})
	}
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := b.service.Resend(t.Context(), tx, b.only(t).EmailUID, "ana", "they asked for it")
		return err
	})
}

// TestResendBesideRetention: a mail whose text is being removed is not sent again without it.
func TestResendBesideRetention(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.schedule(t, b.welcome())
	b.deliver(t, b.mailSender(t, ""), b.last(t))
	first := b.only(t)
	refused := make(chan error, 1)
	b.inTx(t, func(tx *postgres.Tx) error {
		_, err := tx.ExecContext(t.Context(), `
			UPDATE emails
			   SET html_body = '', text_body = '', source = '', params = '{}', content_removed_at = now()`)
		go func() {
			refused <- b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
				_, err := b.service.Resend(t.Context(), tx, first.EmailUID, "ana", "")
				return err
			})
		}()
		pgtest.WaitForLock(t, b.db)
		return err
	})
	if err := <-refused; lending.ErrorCode(err) != lending.CodeInvalidState || len(b.all(t)) != 1 {
		t.Errorf("it is re-sent: %v", err)
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	add := func(minutes int, message email.Message) {
		b.db.Now = func() time.Time { return at(minutes) }
		b.schedule(t, message)
	}
	other := b.newApplication(t)
	paused, elsewhere := b.task("paused"), b.task("elsewhere")
	paused.Paused = true
	elsewhere.ApplicationUID, elsewhere.ToAddress = other, "Bo@Example.com"
	add(0, b.welcome())
	add(1, paused)
	add(2, elsewhere)
	add(3, b.task("last"))
	b.exec(t, `UPDATE emails
	              SET state = 'failed', outcome_unknown = true, next_attempt_at = NULL,
	                  finished_at = now()
	            WHERE params->>'task_title' = 'last'`)

	for name, test := range map[string]struct {
		filter email.Filter
		want   []int // minutes
	}{
		"all":         {email.Filter{}, []int{3, 2, 1, 0}},
		"application": {email.Filter{ApplicationUID: other}, []int{2}},
		"state":       {email.Filter{State: email.StateQueued}, []int{2, 0}},
		"suppressed":  {email.Filter{State: email.StateSuppressed}, []int{1}},
		"kind":        {email.Filter{Kind: email.KindTask}, []int{3, 2, 1}},
		"address":     {email.Filter{ToAddress: "bo@example.COM"}, []int{2}},
		"unknown":     {email.Filter{OutcomeUnknown: true}, []int{3}},
		"since":       {email.Filter{Since: at(2)}, []int{3, 2}},
		"until":       {email.Filter{Until: at(2)}, []int{1, 0}},
		"between":     {email.Filter{Since: at(1), Until: at(3)}, []int{2, 1}},
		"all of it": {email.Filter{
			State: email.StateQueued, Kind: email.KindTask, ApplicationUID: other,
			ToAddress: "bo@example.com", Since: at(0), Until: at(9),
		}, []int{2}},
		"nothing":        {email.Filter{State: email.StateSent}, nil},
		"hostile filter": {email.Filter{ToAddress: "' OR 1=1 --"}, nil},
	} {
		rows, next, err := email.List(t.Context(), b.db, test.filter, postgres.Paging{Limit: 50})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []int
		for _, row := range rows {
			got = append(got, int(row.CreatedAt.Sub(start).Minutes()))
		}
		if !slices.Equal(got, test.want) || !next.IsZero() {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestListPages pages through mails of one moment, which differ only by their uid.
func TestListPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	b.db.Now = func() time.Time { return now }
	for range 7 {
		b.schedule(t, b.task("same moment"))
	}
	seen := make(map[uuid.UUID]bool)
	page := postgres.Paging{Limit: 3}
	for pages := 1; ; pages++ {
		rows, next, err := email.List(t.Context(), b.db, email.Filter{Kind: email.KindTask}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if seen[row.EmailUID] {
				t.Errorf("%s is on two pages", row.EmailUID)
			}
			seen[row.EmailUID] = true
		}
		if next.IsZero() {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		page.From = next
	}
	if len(seen) != 7 {
		t.Errorf("the pages hold %d of 7 mails", len(seen))
	}
}

func TestGetUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := email.Get(t.Context(), b.db, uuid.New())
	if lending.ErrorCode(err) != lending.CodeNotFound {
		t.Error(err)
	}
}

func validSettings() email.Settings {
	return email.Settings{
		LenderName: "Meadow Lending", PrimaryColor: "#123456", AccentColor: "#ABCDEF",
		ReplyTo: "help@meadow.example",
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	before, err := email.LoadSettings(t.Context(), b.db)
	if err != nil || before.LenderName == "" || before.Validate() != nil {
		t.Fatalf("a new installation has %+v: %v", before, err)
	}
	b.inTx(t, func(tx *postgres.Tx) error {
		return email.SaveSettings(t.Context(), tx, validSettings(), "admin")
	})
	after, err := email.LoadSettings(t.Context(), b.db)
	if err != nil || after.LenderName != "Meadow Lending" || after.AccentColor != "#abcdef" ||
		after.ReplyTo != "help@meadow.example" || len(after.AlertTo) != 0 {
		t.Errorf("saved %+v: %v", after, err)
	}
}

func TestSettingsRefuse(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for field, spoil := range map[string]func(*email.Settings){
		"lender_name":   func(s *email.Settings) { s.LenderName = "two\nlines" },
		"primary_color": func(s *email.Settings) { s.PrimaryColor = "red" },
		"accent_color":  func(s *email.Settings) { s.AccentColor = "#12345g" },
		"reply_to":      func(s *email.Settings) { s.ReplyTo = "Ana <ana@example.com>" },
		"alert_to":      func(s *email.Settings) { s.AlertTo = []string{"ok@example.com", "no"} },
	} {
		settings := validSettings()
		spoil(&settings)
		err := b.db.InTx(t.Context(), func(tx *postgres.Tx) error {
			return email.SaveSettings(t.Context(), tx, settings, "admin")
		})
		refusal, ok := errors.AsType[*lending.Error](err)
		if !ok || len(refusal.Details) != 1 || refusal.Details[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	settings := validSettings()
	settings.AccentColor = "#abcdef" // in the form in which it is saved
	if settings.LenderName = strings.Repeat("ж", 100); settings.Validate() != nil {
		t.Errorf("a name of 100 characters: %v", settings.Validate())
	}
	settings.AlertTo = slices.Repeat([]string{"a@example.com"}, 21)
	if settings.LenderName = ""; lending.ErrorCode(settings.Validate()) != lending.CodeValidation {
		t.Error("an empty name and 21 alert addresses are taken")
	}
}
