package faults

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// checkMails compares the log with what mail servers accepted: each e-mail logged as sent
// arrived once, and no other arrived.
func checkMails(t *testing.T, db *postgres.DB, servers ...*emailtest.Server) (sent, failed int) {
	t.Helper()
	arrived := map[string]int{}
	for _, server := range servers {
		for _, message := range server.Messages() {
			id := emailtest.Parse(t, message.Source).Header.Get("Message-Id")
			arrived[strings.Trim(id, "<>")]++
		}
	}
	for _, mail := range e2etest.Mails(t, db) {
		count := arrived[mail.MessageID]
		delete(arrived, mail.MessageID)
		switch mail.State {
		case "suppressed": // the application's communications were paused
			if count > 0 {
				t.Errorf("mail %s was suppressed and arrived", mail.UID)
			}
		case "sent":
			sent++
			if count != 1 {
				t.Errorf("mail %s is sent and arrived %d times", mail.UID, count)
			}
		case "failed":
			failed++
			if count != 0 {
				t.Errorf("mail %s failed and arrived %d times", mail.UID, count)
			}
		default:
			t.Errorf("a mail is under way in the end: %+v", mail)
		}
	}
	if len(arrived) > 0 {
		t.Errorf("mails arrived that the log does not know: %v", arrived)
	}
	return sent, failed
}

// createTasks creates tasks, each of which causes an e-mail to the borrower.
func (l *load) createTasks(n int) {
	l.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	for range n {
		if !l.one(client) {
			l.t.Fatal("a task was not created")
		}
	}
}

// getKnown lets each server send until it has measured how fast the receiver answers: before
// that it makes only one or two requests at a time.
func (l *load) getKnown(db *postgres.DB, servers ...*e2etest.Server) {
	l.t.Helper()
	waittest.Within(l.t, time.Minute, "every worker knows the receiver", func() bool {
		for _, s := range servers {
			if gauge(l.t, s, "drawbridge_webhook_attempt_duration_seconds_count") == 0 {
				l.createTasks(4)
				return false
			}
		}
		return true
	})
	waitUntilSettled(l.t, db, time.Minute)
}

// passTime makes every retry of an e-mail due, as if the time until then had passed, and
// waits until each was made.
func passTime(t *testing.T, db *postgres.DB) {
	t.Helper()
	before := map[string]int{}
	for _, mail := range e2etest.Mails(t, db) {
		if mail.State == "queued" && !mail.Waits {
			before[mail.UID] = mail.Attempts
		}
	}
	_, err := db.ExecContext(t.Context(), `
		UPDATE river_job
		   SET state = 'available', scheduled_at = now()
		 WHERE kind = 'send_email'
		   AND state IN ('scheduled', 'retryable')`)
	if err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, e2etest.MailPatience, "every retry was made", func() bool {
		return !slices.ContainsFunc(e2etest.Mails(t, db), func(p e2etest.Mail) bool {
			made, waited := before[p.UID]
			return p.Running > 0 || waited && p.State == "queued" && p.Attempts == made
		})
	})
}

// hang listens and never sends anything.
func hang(t *testing.T) string {
	t.Helper()
	return emailtest.NewScript(t, func(talk *emailtest.Talk) { talk.Silence() }).Address()
}

// refusingAddress is an address at which connections are refused.
func refusingAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	return listener.Addr().String()
}

// TestFaultMailServer lets the mail server refuse connections, hang, and cut them
// in the middle of messages, and come back.
func TestFaultMailServer(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.New(t)
	address := refusingAddress(t)
	w.Env["DRAWBRIDGE_SMTP_URL"] = "smtp://" + address
	l := newLoad(w, r)
	s := w.Serve()
	l.use(s)
	db := w.Open(t)

	// The demo's own e-mails have an outage that outlasts all their retries.
	e2etest.WaitForMails(t, db)
	queued := func(m e2etest.Mail) bool { return m.State == "queued" }
	for slices.ContainsFunc(e2etest.Mails(t, db), queued) {
		passTime(t, db)
	}
	suppressed := func(m e2etest.Mail) bool { return m.State == "suppressed" }
	spent := slices.DeleteFunc(e2etest.Mails(t, db), suppressed)
	demo := len(e2etest.Mails(t, db))
	for _, mail := range spent {
		if mail.State != "failed" || mail.Attempts != 11 || mail.Unknown {
			t.Errorf("after a day without a mail server: %+v", mail)
		}
	}
	v := visit(t, s.URL)
	v.says(at(paths.Email, spent[0].UID), "Failed", "Gave up after 11 attempts", "11 attempts")

	l.createTasks(int(scaled(6, 10)))
	e2etest.WaitForMails(t, db)
	g := newProxyAt(t, address, hang(t))
	if *chaos { // takes as long as the wait for a greeting
		passTime(t, db)
	}
	g.point(emailtest.NewScript(t, func(talk *emailtest.Talk) {
		talk.Greet()
		talk.Envelope()
		talk.Hear() // reads the first line; the rest is cut off
	}).Address())
	passTime(t, db)
	server := emailtest.NewServer(t, emailtest.Options{})
	g.point(strings.TrimPrefix(server.URL(), "smtp://"))
	passTime(t, db)
	sent, failed := checkMails(t, db, server)
	if failed < len(spent) || sent+failed != len(spent)+len(l.confirmed()) {
		t.Errorf("%d mails were sent and %d failed, of %d and %d",
			sent, failed, len(l.confirmed()), len(spent))
	}
	for _, mail := range e2etest.Mails(t, db)[demo:] {
		switch {
		case mail.State == "sent":
			v.says(at(paths.Email, mail.UID), "Sent")
		case mail.Unknown: // cut after the last line: the outcome is unknown
			v.says(at(paths.Email, mail.UID), "outcome unknown")
		default:
			t.Errorf("the mail server is back: %+v", mail)
		}
	}
	waitUntilSettled(t, db, e2etest.MailPatience)
	found := audit(t, db, r, l.confirmed())
	if found.delivered != found.events {
		t.Errorf("the mail server held deliveries up: %+v", found)
	}
	t.Logf("%d mails sent, %d failed; %+v", sent, failed, found)
}

// TestFaultMailWorkerKilled kills a worker in the middle of e-mails: another worker sends
// those that had not been handed over, and records the outcome of the other one as
// unknown.
func TestFaultMailWorkerKilled(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.New(t)
	const tasks = 3
	var early, late atomic.Int32
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		talk.Greet()
		if talk.Number > 1 {
			early.Add(1)
			talk.Silence() // the envelope is never answered
			return
		}
		talk.Envelope()
		talk.Message()
		late.Add(1) // the whole message has arrived
		talk.Silence()
	})
	server := emailtest.NewServer(t, emailtest.Options{})
	g := newProxy(t, strings.TrimPrefix(server.URL(), "smtp://"))
	w.Env["DRAWBRIDGE_SMTP_URL"] = "smtp://" + g.listener.Addr().String()
	l := newLoad(w, r)
	api, victim := w.Serve("--roles", "api,console"), w.Serve("--roles", "worker")
	l.use(api)
	db := w.Open(t)
	e2etest.WaitForMails(t, db) // the demo's own mails
	g.point(script.Address())
	g.cut()
	l.createTasks(tasks)
	waittest.Within(t, e2etest.MailPatience, "every mail is under way", func() bool {
		return early.Load() == tasks-1 && late.Load() == 1
	})
	victim.Kill()
	killed := time.Now()
	g.point(strings.TrimPrefix(server.URL(), "smtp://"))
	heir := w.Serve("--roles", "worker")
	e2etest.WaitForMails(t, db)
	took := time.Since(killed)
	if sent, failed := checkMails(t, db, server); failed != 1 {
		t.Errorf("%d mails were sent and %d failed, want one", sent, failed)
	}
	for _, mail := range e2etest.Mails(t, db) {
		if mail.State != "failed" {
			continue
		}
		if !mail.Unknown || mail.Handed != 1 {
			t.Errorf("the mail that was handed over: %+v", mail)
		}
		visit(t, api.URL).says(at(paths.Email, mail.UID), "outcome unknown")
	}
	waitUntilSettled(t, db, 3*time.Minute)
	audit(t, db, r, l.confirmed())
	if status := heir.Stop(); status != 0 {
		t.Errorf("the other worker ended with %d", status)
	}
	t.Logf("taken up %s after the kill", took.Round(time.Second))
}
