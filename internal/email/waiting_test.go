package email_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/health"
)

// postOffice runs a bench's queue by hand, on a clock that is set by hand.
type postOffice struct {
	*bench
	sender *email.MailSender
	now    time.Time
	done   int
}

func newPostOffice(t *testing.T, server *emailtest.Server) *postOffice {
	t.Helper()
	b := newBench(t)
	// First attempts are due by the machine's clock, which must not be ahead.
	o := &postOffice{bench: b, now: time.Now().UTC().Add(time.Hour).Truncate(time.Second)}
	b.db.Now = func() time.Time { return o.now }
	o.sender = b.mailSender(t, server.URL())
	return o
}

// work runs the jobs that are due and have not run, and returns how many it ran.
func (o *postOffice) work(t *testing.T) int {
	t.Helper()
	ran := 0
	for _, job := range o.queue(t)[o.done:] {
		if !job.At.After(o.now) {
			o.deliver(t, o.sender, job.SendArgs)
			ran++
		}
		o.done++ // jobs that are not due are skipped; these tests have none
	}
	return ran
}

// resume lets time pass, and then calls Resume for the waiting mails.
func (o *postOffice) resume(t *testing.T, wait time.Duration) int {
	t.Helper()
	o.now = o.now.Add(wait)
	count, err := o.sender.Resume(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func (o *postOffice) stop(t *testing.T) *email.Stop {
	t.Helper()
	stop, err := email.FindStop(t.Context(), o.db)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// states returns the state of each mail, oldest first.
func (o *postOffice) states(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, mail := range slices.Backward(o.all(t)) {
		all = append(all, fmt.Sprintf("%s %s %d", mail.State, mail.WaitsFor, mail.Tries()))
	}
	return all
}

// refusing answers with a code while on is set.
func refusing(on *atomic.Bool, code int, enhanced smtp.EnhancedCode) func(string) error {
	return func(string) error {
		if !on.Load() {
			return nil
		}
		return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: "not you"}
	}
}

// TestServerRefusesUs: a refusal of this installation fails no mail and uses up no try. One mail at
// a time tries again, after growing pauses, and in the end all are sent, each once.
func TestServerRefusesUs(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	for name, options := range map[string]emailtest.Options{
		"530 at MAIL":   {Mail: refusing(&on, 530, smtp.EnhancedCode{5, 7, 0})},
		"550 at MAIL":   {Mail: refusing(&on, 550, smtp.NoEnhancedCode)},
		"5.7.1 at RCPT": {Rcpt: refusing(&on, 550, smtp.EnhancedCode{5, 7, 1})},
	} {
		on.Store(true)
		server := emailtest.NewServer(t, options)
		o := newPostOffice(t, server)
		const count = 4
		for i := range count {
			o.schedule(t, o.task(fmt.Sprint(i)))
			o.now = o.now.Add(time.Millisecond)
		}
		o.work(t)
		stop := o.stop(t)
		if stop == nil || stop.Waiting != count || !contains530(stop.Answer) {
			t.Fatalf("%s: the stop is %+v", name, stop)
		}
		if queued := o.resume(t, time.Second); queued != 0 || o.work(t) != 0 {
			t.Errorf("%s: the server is not left alone", name)
		}
		probed := map[string]bool{}
		for _, seconds := range []int{5, 10, 20, 40, 80, 160, 320, 640, 900, 900, 900, 900} {
			wait := time.Duration(seconds) * time.Second
			o.resume(t, wait)
			job := o.last(t)
			if ran := o.work(t); ran != 1 {
				t.Fatalf("%s: %d mails asked again after %s", name, ran, wait)
			}
			if o.resume(t, wait); o.work(t) != 0 && seconds < 450 {
				t.Errorf("%s: the pause after %s does not grow", name, wait)
			}
			probed[job.EmailUID.String()] = true
		}
		if len(probed) != count {
			t.Errorf("%s: %d of %d mails asked", name, len(probed), count)
		}
		want := slices.Repeat([]string{"queued server 0"}, count)
		if got := o.states(t); !slices.Equal(got, want) {
			t.Fatalf("%s: after hours of refusals: %q", name, got)
		}
		on.Store(false)
		o.resume(t, time.Hour)
		o.work(t)
		if o.stop(t) != nil || len(server.Messages()) != 1 {
			t.Fatalf("%s: after the first that was taken: %+v", name, o.stop(t))
		}
		o.resume(t, time.Hour)
		o.work(t)
		want = slices.Repeat([]string{"sent  1"}, count)
		if got := o.states(t); !slices.Equal(got, want) || len(server.Messages()) != count {
			t.Errorf("%s: in the end %q, %d arrived", name, got, len(server.Messages()))
		}
	}
}

func contains530(answer string) bool {
	return slices.Contains([]string{"530 5.7.0 not you", "550 not you", "550 5.7.1 not you"}, answer)
}

// TestServerRefusesOneOfUs: a recipient whom the relay refuses for a reason that is about us does
// not keep the mail of others from being sent.
func TestServerRefusesOneOfUs(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(to string) error {
		if to == "bad@example.com" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "no"}
		}
		return nil
	}})
	o := newPostOffice(t, server)
	bad := o.task("bad")
	bad.ToAddress = "bad@example.com"
	o.schedule(t, bad)
	o.work(t)
	for i := range 5 {
		o.now = o.now.Add(time.Millisecond)
		o.schedule(t, o.task(fmt.Sprint(i)))
		o.work(t)
		for range 3 {
			o.resume(t, 16*time.Minute)
			o.work(t)
		}
	}
	want := append([]string{"queued server 0"}, slices.Repeat([]string{"sent  1"}, 5)...)
	if got := o.states(t); !slices.Equal(got, want) {
		t.Errorf("the mails are %q", got)
	}
}

// TestRefusedRecipientsHoldNobodyUp: however many recipients the relay refuses for a reason that
// may be about us, other mails are only held up for seconds, while the refused ones go on waiting.
func TestRefusedRecipientsHoldNobodyUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad    int
		domain string
	}{
		"one": {1, "blocked.example"}, "many": {20, "blocked.example"},
		"very many": {120, "blocked.example"}, "many at the others' domain": {20, "example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(to string) error {
				if to != "ana@example.com" {
					return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "no"}
				}
				return nil
			}})
			o := newPostOffice(t, server)
			for i := range test.bad {
				bad := o.task(fmt.Sprint("bad", i))
				bad.ToAddress = fmt.Sprintf("b%d@%s", i, test.domain)
				o.schedule(t, bad)
				o.now = o.now.Add(time.Millisecond)
			}
			stopped := 0
			for tick := range 12 * 15 { // a quarter of an hour
				if tick >= 12*5 && tick%12 == 0 {
					o.schedule(t, o.task("good"))
				}
				o.resume(t, 5*time.Second)
				o.work(t)
				if tick >= 12*6 && o.stop(t) != nil {
					stopped++
				}
			}
			refusals, longest := 0, time.Duration(0)
			for _, mail := range o.all(t) {
				refusals += mail.Refusals
				switch {
				case mail.ToAddress != "ana@example.com":
					if mail.State != email.StateQueued || mail.WaitsFor != email.WaitServer {
						t.Errorf("the mail to %s is %s", mail.ToAddress, mail.State)
					}
				case mail.State != email.StateSent:
					t.Error("a mail is not sent")
				default:
					longest = max(longest, mail.FinishedAt.Sub(mail.CreatedAt))
				}
			}
			if longest > 40*time.Second || stopped > 0 {
				t.Errorf("mails waited up to %s; %d stops after the first was taken", longest, stopped)
			}
			if refusals < test.bad || refusals > 10*test.bad+10 {
				t.Errorf("%d attempts were refused", refusals)
			}
		})
	}
}

// TestServerRefusesOneForItsSize: a message that is too big stops no other and is never given up;
// it is sent once the server accepts it.
func TestServerRefusesOneForItsSize(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]*smtp.SMTPError{
		"552":       {Code: 552, EnhancedCode: smtp.NoEnhancedCode, Message: "too big"},
		"552 5.2.3": {Code: 552, EnhancedCode: smtp.EnhancedCode{5, 2, 3}, Message: "too big"},
		"550 5.3.4": {Code: 550, EnhancedCode: smtp.EnhancedCode{5, 3, 4}, Message: "too big"},
	} {
		var big atomic.Bool
		server := emailtest.NewServer(t, emailtest.Options{Mail: func(string) error {
			if big.Load() {
				return refusal
			}
			return nil
		}})
		o := newPostOffice(t, server)
		o.schedule(t, o.task("big"))
		for range 3 {
			big.Store(true)
			o.work(t)
			big.Store(false)
			o.now = o.now.Add(time.Millisecond)
			o.schedule(t, o.task("small"))
			if o.work(t); o.stop(t) != nil {
				t.Fatalf("%s stops all: %+v", name, o.stop(t))
			}
			if o.resume(t, 3*time.Second) != 0 {
				t.Errorf("%s: it is tried again at once", name)
			}
			o.resume(t, time.Hour)
		}
		o.work(t)
		got := o.states(t)
		if want := slices.Repeat([]string{"sent  1"}, 4); !slices.Equal(got, want) {
			t.Errorf("%s: the mails are %q", name, got)
		}
	}
}

// TestServerRefusesRecipient: an answer about the recipient fails that mail alone.
func TestServerRefusesRecipient(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(to string) error {
		if to == "gone@example.com" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no"}
		}
		return nil
	}})
	o := newPostOffice(t, server)
	gone := o.task("gone")
	gone.ToAddress = "gone@example.com"
	o.schedule(t, gone)
	o.now = o.now.Add(time.Millisecond)
	o.schedule(t, o.task("here"))
	o.work(t)
	want := []string{"failed  1", "sent  1"}
	if got := o.states(t); !slices.Equal(got, want) || o.stop(t) != nil {
		t.Errorf("the mails are %q", got)
	}
}

// TestNoServerEndsTheStop: without a mail server there is nothing left to wait for.
func TestNoServerEndsTheStop(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	on.Store(true)
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{
		Mail: refusing(&on, 530, smtp.EnhancedCode{5, 7, 0}),
	}))
	o.schedule(t, o.task("1"))
	o.work(t)
	o.sender = o.mailSender(t, "")
	o.resume(t, 0)
	o.work(t)
	if got := o.states(t); !slices.Equal(got, []string{"not_sent  0"}) {
		t.Errorf("the mail is %q", got)
	}
}

// TestWelcomeFirst: an application's other mails wait until its welcome mail is
// concluded, however that ends; those of others do not.
func TestWelcomeFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		code int
		want string
	}{
		"sent": {0, "sent  1"}, "failed": {550, "failed  1"}, "put off": {450, "queued  1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := emailtest.NewServer(t, emailtest.Options{Rcpt: func(to string) error {
				if to == "ana@example.com" && test.code != 0 {
					return &smtp.SMTPError{Code: test.code, Message: "no"}
				}
				return nil
			}})
			o := newPostOffice(t, server)
			welcome, task, other := o.welcome(), o.task("mine"), o.task("another's")
			task.ToAddress, other.ToAddress = "tasks@example.com", "other@example.com"
			other.ApplicationUID = o.newApplication(t)
			for _, message := range []email.Message{welcome, task, other} {
				o.schedule(t, message)
				o.now = o.now.Add(time.Millisecond)
			}
			jobs := o.queue(t)
			o.deliver(t, o.sender, jobs[1].SendArgs)
			o.deliver(t, o.sender, jobs[2].SendArgs)
			want := []string{"queued  0", "queued welcome 0", "sent  1"}
			if got := o.states(t); !slices.Equal(got, want) {
				t.Fatalf("before the welcome mail: %q", got)
			}
			if o.resume(t, time.Minute) != 0 {
				t.Error("the task's mail is let go before the welcome mail")
			}
			o.deliver(t, o.sender, jobs[0].SendArgs)
			o.done = len(jobs)
			o.work(t)
			want = []string{test.want, "sent  1", "sent  1"}
			if test.code == 450 {
				want[1] = "queued welcome 0"
			}
			if got := o.states(t); !slices.Equal(got, want) {
				t.Errorf("after the welcome mail: %q, want %q", got, want)
			}
		})
	}
}

// TestWaitingIsNotForgotten: a mail that began to wait just as its welcome mail ended is found by
// the next pass.
func TestWaitingIsNotForgotten(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.task("1"))
	o.exec(t, `UPDATE emails SET waits_for = 'welcome'`)
	if o.work(t); o.resume(t, 0) != 1 || o.work(t) != 1 {
		t.Error("the mail waits for ever")
	}
	if got := o.states(t); !slices.Equal(got, []string{"sent  1"}) {
		t.Errorf("the mail is %q", got)
	}
}

// TestResendMatching: running it twice does not send a re-sent mail a third time.
func TestResendMatching(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	for i, state := range []string{"failed", "failed", "failed", "sent", "queued", "failed"} {
		o.schedule(t, o.task(fmt.Sprint(i)))
		o.exec(t, `
			UPDATE emails SET state = $1,
			       next_attempt_at = CASE WHEN $1 = 'queued' THEN created_at END,
			       finished_at = CASE WHEN $1 <> 'queued' THEN created_at END
			 WHERE created_at = $2`, state, o.now)
		o.now = o.now.Add(time.Minute)
	}
	log := o.all(t)
	o.exec(t, `UPDATE emails SET outcome_unknown = true WHERE email_uid = $1`, log[0].EmailUID)
	filter := email.Filter{State: email.StateFailed, Since: log[4].CreatedAt, Until: o.now}
	for round, want := range []int{2, 0} {
		o.inTx(t, func(tx *postgres.Tx) error {
			resent, err := o.service.ResendMatching(t.Context(), tx, filter, "sam", "")
			if len(resent) != want {
				t.Errorf("round %d re-sent %+v", round, resent)
			}
			if want > 0 && (resent[0].Original != log[4].EmailUID ||
				resent[1].Original != log[3].EmailUID) {
				t.Errorf("re-sent %+v", resent)
			}
			return err
		})
	}
}

// TestResendMatchingTogether: two concurrent re-sends of the same mails send each once.
func TestResendMatchingTogether(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.task("1"), o.task("2"))
	o.exec(t, `UPDATE emails SET state = 'failed', next_attempt_at = NULL, finished_at = created_at`)
	resend := func(tx *postgres.Tx) (int, error) {
		resent, err := o.service.ResendMatching(t.Context(), tx,
			email.Filter{State: email.StateFailed}, "sam", "")
		return len(resent), err
	}
	second := make(chan int, 1)
	o.inTx(t, func(tx *postgres.Tx) error {
		first, err := resend(tx)
		if first != 2 {
			t.Errorf("the first re-sent %d", first)
		}
		go func() {
			count := 0
			err := o.db.InTx(t.Context(), func(tx *postgres.Tx) (err error) {
				count, err = resend(tx)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			second <- count
		}()
		pgtest.WaitForLock(t, o.db)
		return err
	})
	if count := <-second; count != 0 {
		t.Errorf("the second re-sent %d", count)
	}
}

// A welcome mail whose job is gone would hold up all others of its application for ever.
func TestMailsWithoutAJobGetOne(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.welcome(), o.task("Sign"))
	orphans := func(patience time.Duration) int {
		t.Helper()
		count, err := o.sender.RequeueOrphans(t.Context(), patience)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if count := orphans(0); count != 0 {
		t.Errorf("%d mails got a second job", count)
	}
	o.exec(t, `
		UPDATE river_job SET state = 'discarded', finalized_at = now()
		 WHERE id = (SELECT min(id) FROM river_job WHERE queue = 'email')`)
	o.deliver(t, o.sender, o.queue(t)[1].SendArgs)
	o.exec(t, `DELETE FROM river_job WHERE state = 'available'`) // as after a job that has run
	got := slices.Sorted(slices.Values(o.states(t)))
	if !slices.Equal(got, []string{"queued  0", "queued welcome 0"}) {
		t.Fatalf("the mails are %q", got)
	}
	if count := orphans(3 * time.Hour); count != 0 {
		t.Errorf("%d mails got a job before they were late", count)
	}
	o.now = o.now.Add(4 * time.Minute)
	if first, again := orphans(3*time.Minute), orphans(3*time.Minute); first != 1 || again != 0 {
		t.Errorf("%d mails got a job, and then %d", first, again)
	}
	o.deliver(t, o.sender, o.last(t))
	o.deliver(t, o.sender, o.last(t))
	if got := o.states(t); !slices.Equal(got, []string{"sent  1", "sent  1"}) {
		t.Errorf("the mails are %q", got)
	}
}

// Where there are many webhooks, their tally runs around the clock.
func TestLostMailsAreFoundBesideATally(t *testing.T) {
	t.Parallel()
	o := newPostOffice(t, emailtest.NewServer(t, emailtest.Options{}))
	o.schedule(t, o.task("Sign"))
	o.exec(t, `DELETE FROM river_job WHERE queue = 'email'`)
	o.now = o.now.Add(4 * time.Minute)
	o.inTx(t, func(tx *postgres.Tx) error {
		tally := &health.Service{DB: o.db}
		if _, err := tally.Tally(t.Context(), tx); err != nil { // it has not committed yet
			return err
		}
		count, err := o.sender.RequeueOrphans(t.Context(), 3*time.Minute)
		if count != 1 {
			t.Errorf("%d mails got a job", count)
		}
		return err
	})
	o.deliver(t, o.sender, o.last(t))
	if got := o.states(t); !slices.Equal(got, []string{"sent  1"}) {
		t.Errorf("the mails are %q", got)
	}
}

// A process died after the hand-over, and somebody deleted its job: whether the mail was sent is
// not known, so its new job does not send it again.
func TestLostMailMayHaveGone(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{})
	o := newPostOffice(t, server)
	o.schedule(t, o.task("Sign"))
	o.exec(t, `
		INSERT INTO email_attempts (email_uid, number, started_at, handed_over_at, server)
		SELECT email_uid, 1, created_at, created_at, 'mail.example' FROM emails`)
	o.exec(t, `UPDATE emails SET attempt_count = 1`)
	o.exec(t, `DELETE FROM river_job`)
	o.now = o.now.Add(4 * time.Minute)
	if count, err := o.sender.RequeueOrphans(t.Context(), 3*time.Minute); count != 1 || err != nil {
		t.Fatalf("%d mails got a job: %v", count, err)
	}
	report := o.deliver(t, o.sender, o.last(t))
	if report.Email.State != email.StateFailed || len(server.Messages()) != 0 {
		t.Errorf("the mail is %s, and %d arrived", report.Email.State, len(server.Messages()))
	}
}
