package email_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/waittest"
)

// quick is DefaultLimits for servers that hang on purpose.
func quick() email.Limits {
	limits := email.DefaultLimits()
	limits.Connect, limits.Command = 3*time.Second, 3*time.Second
	limits.Body, limits.Answer = 3*time.Second, 3*time.Second
	// A loaded machine may take a while to notice that a server hung up.
	limits.Settle = 200 * time.Millisecond
	return limits
}

func newSMTPClient(t *testing.T, rawURL string, limits email.Limits) *email.SMTPClient {
	t.Helper()
	server, err := email.ParseServer(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	client := email.NewSMTPClient(server, limits)
	t.Cleanup(client.Close)
	return client
}

func envelope(number int) email.Envelope {
	return email.Envelope{
		From:    "<mail@meadow.example>",
		To:      "<ana@example.com>",
		Message: fmt.Sprintf("Subject: %d\r\n\r\nHello\r\n.dotted\r\n", number),
	}
}

func agree(context.Context) error { return nil }

func TestSend(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(true)
	for _, test := range []struct {
		name      string
		options   emailtest.Options
		encrypted bool
	}{
		{"in the clear", emailtest.Options{}, false},
		{"STARTTLS", emailtest.Options{TLS: &certificate}, true},
		{"implicit TLS", emailtest.Options{TLS: &certificate, Implicit: true}, true},
		{
			"STARTTLS with credentials",
			emailtest.Options{TLS: &certificate, User: "ana@x", Password: "p/w:?#ä"},
			true,
		},
		{
			"implicit TLS with credentials",
			emailtest.Options{TLS: &certificate, Implicit: true, User: "ana", Password: "pw"},
			true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := emailtest.NewServer(t, test.options)
			client := newSMTPClient(t, server.URL(), email.DefaultLimits())
			receipt := client.Send(t.Context(), envelope(1), agree)
			if receipt.Outcome != email.OutcomeSent || receipt.Code != 250 {
				t.Fatalf("the receipt is %+v", receipt)
			}
			if (receipt.TLS == "TLS 1.3") != test.encrypted {
				t.Errorf("the receipt says %q", receipt.TLS)
			}
			got := server.Wait(t, 1)[0]
			want := envelope(1)
			if got.From != "mail@meadow.example" || got.To != "ana@example.com" ||
				got.Source != want.Message || got.Encrypted != test.encrypted {
				t.Errorf("received %+v", got)
			}
		})
	}
}

// TestWrongPassword: the mails wait until the operator has fixed it.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(true)
	server := emailtest.NewServer(t, emailtest.Options{
		TLS: &certificate, User: "ana", Password: "right",
	})
	wrong := strings.Replace(server.URL(), "right", "wrong", 1)
	receipt := newSMTPClient(t, wrong, quick()).Send(t.Context(), envelope(1), agree)
	if receipt.Outcome != email.OutcomeRefused || receipt.Stage != email.StageAuth ||
		receipt.Code != 535 {
		t.Errorf("the receipt is %+v", receipt)
	}
	if strings.Contains(fmt.Sprint(receipt), "wrong") {
		t.Errorf("the receipt quotes the password: %+v", receipt)
	}
}

// TestCredentialsNeedTLS: a password is not sent without encryption.
func TestCredentialsNeedTLS(t *testing.T) {
	t.Parallel()
	var heard sync.Map
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		talk.Greet("AUTH PLAIN LOGIN")
		for {
			heard.Store(talk.Hear(), true)
			talk.Say("250 ok")
		}
	})
	client := newSMTPClient(t, "smtp://ana:secret@"+script.Address(), quick())
	receipt := client.Send(t.Context(), envelope(1), agree)
	if receipt.Outcome != email.OutcomeRefused || receipt.Stage != email.StageTLS ||
		!strings.Contains(receipt.Error, "STARTTLS") {
		t.Errorf("the receipt is %+v", receipt)
	}
	heard.Range(func(line, _ any) bool {
		t.Errorf("the server heard %q", line)
		return true
	})
}

func TestUntrustedCertificate(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(false)
	for _, implicit := range []bool{false, true} {
		server := emailtest.NewServer(t, emailtest.Options{TLS: &certificate, Implicit: implicit})
		receipt := newSMTPClient(t, server.URL(), quick()).Send(t.Context(), envelope(1), agree)
		if receipt.Outcome != email.OutcomeTemporary || receipt.Stage != email.StageTLS ||
			!strings.Contains(receipt.Error, "certificate") {
			t.Errorf("implicit %v: the receipt is %+v", implicit, receipt)
		}
		if arrived := server.Messages(); len(arrived) != 0 {
			t.Errorf("implicit %v: %d mails were sent anyway", implicit, len(arrived))
		}
	}
}

// TestRefusals: 4xx may be tried again, 5xx may not, and neither makes the connection unusable for
// the next mail.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code    int
		outcome email.Outcome
	}{
		{421, email.OutcomeTemporary},
		{450, email.OutcomeTemporary},
		{451, email.OutcomeTemporary},
		{550, email.OutcomePermanent},
		{554, email.OutcomePermanent},
	} {
		for _, stage := range []email.Stage{email.StageRecipient, email.StageHandOver} {
			t.Run(fmt.Sprintf("%d at %s", test.code, stage), func(t *testing.T) {
				t.Parallel()
				var once atomic.Bool
				refuse := func() error {
					if once.Swap(true) {
						return nil
					}
					return &smtp.SMTPError{Code: test.code, Message: "not\nnow"}
				}
				options := emailtest.Options{Rcpt: func(string) error { return refuse() }}
				if stage == email.StageHandOver {
					options = emailtest.Options{
						Data: func(emailtest.Message) error { return refuse() },
					}
				}
				server := emailtest.NewServer(t, options)
				client := newSMTPClient(t, server.URL(), quick())
				receipt := client.Send(t.Context(), envelope(1), agree)
				if receipt.Outcome != test.outcome || receipt.Stage != stage ||
					receipt.Code != test.code || receipt.Reply == "" {
					t.Fatalf("the receipt is %+v", receipt)
				}
				if strings.ContainsAny(receipt.Summary(), "\r\n") {
					t.Errorf("the summary has several lines: %q", receipt.Summary())
				}
				again := client.Send(t.Context(), envelope(2), agree)
				if again.Outcome != email.OutcomeSent || len(server.Messages()) != 1 {
					t.Errorf("the next mail: %+v", again)
				}
			})
		}
	}
}

func refuse(code string) func(*emailtest.Talk) {
	return func(talk *emailtest.Talk) { talk.Say(code + " no") }
}

func silence(talk *emailtest.Talk) { talk.Silence() }

func hangUp(*emailtest.Talk) {}

// TestFaults has a server misbehave at each point of the conversation.
func TestFaults(t *testing.T) {
	t.Parallel()
	body := func(talk *emailtest.Talk) {
		talk.Greet("SIZE 1000000")
		talk.Envelope()
	}
	dot := func(talk *emailtest.Talk) { body(talk); talk.Message() }
	step := func(count int) func(*emailtest.Talk) {
		return func(talk *emailtest.Talk) {
			talk.Greet()
			for range count {
				talk.Hear()
				talk.Say("250 ok")
			}
			talk.Hear()
		}
	}
	for _, test := range []struct {
		name    string
		until   func(*emailtest.Talk)
		then    func(*emailtest.Talk)
		stage   email.Stage
		outcome email.Outcome
	}{
		{"refused at once", hangUp, refuse("554"), email.StageGreeting, email.OutcomeRefused},
		{"busy", hangUp, refuse("421"), email.StageGreeting, email.OutcomeTemporary},
		{"no greeting", hangUp, silence, email.StageGreeting, email.OutcomeTemporary},
		{"closed at once", hangUp, hangUp, email.StageGreeting, email.OutcomeTemporary},
		{"not SMTP", hangUp, refuse("HTTP/1.1 400"), email.StageGreeting, email.OutcomeTemporary},
		{"hangs at MAIL", step(0), silence, email.StageSender, email.OutcomeTemporary},
		{"closes at MAIL", step(0), hangUp, email.StageSender, email.OutcomeTemporary},
		{"refuses MAIL", step(0), refuse("550"), email.StageSender, email.OutcomeRefused},
		{"finds it too big", step(0), refuse("552"), email.StageSender, email.OutcomeRefused},
		{"puts MAIL off", step(0), refuse("451"), email.StageSender, email.OutcomeTemporary},
		{"hangs at RCPT", step(1), silence, email.StageRecipient, email.OutcomeTemporary},
		{"closes at RCPT", step(1), hangUp, email.StageRecipient, email.OutcomeTemporary},
		{"refuses RCPT", step(1), refuse("550 5.1.1"), email.StageRecipient, email.OutcomePermanent},
		{"denies relaying", step(1), refuse("550 5.7.1"), email.StageRecipient, email.OutcomeRefused},
		{"wants a sign-in", step(1), refuse("530"), email.StageRecipient, email.OutcomeRefused},
		{"greylists", step(1), refuse("450 4.7.1"), email.StageRecipient, email.OutcomeTemporary},
		{"hangs at DATA", step(2), silence, email.StageData, email.OutcomeTemporary},
		{"refuses DATA", step(2), refuse("554"), email.StageData, email.OutcomePermanent},
		{"accepts DATA oddly", step(2), refuse("250"), email.StageData, email.OutcomeTemporary},
		{"closes before the message", body, hangUp, email.StageData, email.OutcomeTemporary},
		{
			"closes in the message", body, func(talk *emailtest.Talk) { talk.Hear() },
			email.StageData, email.OutcomeTemporary,
		},
		{"refuses in the message", body, refuse("552"), email.StageData, email.OutcomePermanent},
		{"accepts in the message", body, refuse("250"), email.StageData, email.OutcomeTemporary},
		{"refuses the message", dot, refuse("554"), email.StageHandOver, email.OutcomePermanent},
		{"puts the message off", dot, refuse("451"), email.StageHandOver, email.OutcomeTemporary},
		{"accepts the message", dot, refuse("251"), email.StageHandOver, email.OutcomeSent},
		{"closes after the message", dot, hangUp, email.StageHandOver, email.OutcomeUnknown},
		{"hangs after the message", dot, silence, email.StageHandOver, email.OutcomeUnknown},
		{"babbles after the message", dot, refuse("ok?"), email.StageHandOver, email.OutcomeUnknown},
		{"asks after the message", dot, refuse("354"), email.StageHandOver, email.OutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
				test.until(talk)
				test.then(talk)
			})
			client := newSMTPClient(t, "smtp://"+script.Address(), quick())
			receipt := client.Send(t.Context(), envelope(1), agree)
			if receipt.Stage != test.stage || receipt.Outcome != test.outcome {
				t.Fatalf("the receipt is %+v", receipt)
			}
			if receipt.Summary() == "" || receipt.Server != script.Address() {
				t.Errorf("the receipt says too little: %+v", receipt)
			}
		})
	}
}

// TestAnswerWithoutEnd: a server that never stops is hung up on before it fills the memory.
func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	const line, most = 64 << 10, 64 << 20 // most includes the buffers of the system
	var said atomic.Int64
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		for said.Load() < 4*most {
			talk.Say("220-" + strings.Repeat("x", line))
			said.Add(line)
		}
	})
	client := newSMTPClient(t, "smtp://"+script.Address(), quick())
	receipt := client.Send(t.Context(), envelope(1), agree)
	if receipt.Stage != email.StageGreeting || receipt.Outcome != email.OutcomeTemporary ||
		said.Load() > most {
		t.Errorf("after %d bytes the receipt is %+v", said.Load(), receipt)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	server := emailtest.NewStopped(t, emailtest.Options{})
	receipt := newSMTPClient(t, server.URL(), quick()).Send(t.Context(), envelope(1), agree)
	if receipt.Outcome != email.OutcomeTemporary || receipt.Stage != email.StageConnect ||
		!strings.Contains(receipt.Error, "refused") {
		t.Errorf("the receipt is %+v", receipt)
	}
}

// TestHandOverDecides: without consent the message is not ended, and the part that has arrived is
// not a mail.
func TestHandOverDecides(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{})
	client := newSMTPClient(t, server.URL(), quick())
	for _, reason := range []error{errors.New("taken over"), io.ErrUnexpectedEOF} {
		receipt := client.Send(t.Context(), envelope(1), func(context.Context) error { return reason })
		if receipt.Outcome != email.OutcomeInterrupted || receipt.Error != reason.Error() {
			t.Errorf("the receipt is %+v", receipt)
		}
	}
	if again := client.Send(t.Context(), envelope(2), agree); again.Outcome != email.OutcomeSent {
		t.Fatalf("the next mail: %+v", again)
	}
	arrived := server.Wait(t, 1)
	if len(arrived) != 1 || !strings.Contains(arrived[0].Source, "Subject: 2") {
		t.Errorf("arrived: %+v", arrived)
	}
}

// TestStopping ends an attempt at once, unless the message is handed over: then it waits for the
// answer.
func TestStopping(t *testing.T) {
	t.Parallel()
	t.Run("before the hand-over", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
			talk.Greet()
			stop()
			talk.Silence()
		})
		limits := email.DefaultLimits()
		client := newSMTPClient(t, "smtp://"+script.Address(), limits)
		receipt := client.Send(ctx, envelope(1), agree)
		if receipt.Outcome != email.OutcomeInterrupted {
			t.Errorf("the receipt is %+v", receipt)
		}
	})
	t.Run("in the hand-over", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		server := emailtest.NewServer(t, emailtest.Options{})
		client := newSMTPClient(t, server.URL(), email.DefaultLimits())
		receipt := client.Send(ctx, envelope(1), func(context.Context) error {
			stop()
			return nil
		})
		if receipt.Outcome != email.OutcomeInterrupted || len(server.Messages()) != 0 {
			t.Errorf("the receipt is %+v", receipt)
		}
	})
	t.Run("after the hand-over", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		server := emailtest.NewServer(t, emailtest.Options{
			Data: func(emailtest.Message) error { stop(); return nil },
		})
		client := newSMTPClient(t, server.URL(), email.DefaultLimits())
		receipt := client.Send(ctx, envelope(1), agree)
		if receipt.Outcome != email.OutcomeSent || len(server.Messages()) != 1 {
			t.Errorf("the receipt is %+v", receipt)
		}
	})
}

func TestConnectionReuse(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{})
	limits := quick()
	limits.PerConnection = 4
	client := newSMTPClient(t, server.URL(), limits)
	for i := range 10 {
		if receipt := client.Send(t.Context(), envelope(i), agree); receipt.Outcome != email.OutcomeSent {
			t.Fatalf("mail %d: %+v", i, receipt)
		}
	}
	if got := server.Sessions(); got != 3 {
		t.Errorf("10 mails took %d connections, want 3 for 4 mails each", got)
	}
}

// TestStaleConnection: a restart of the server costs no attempt.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	server := emailtest.NewServer(t, emailtest.Options{})
	client := newSMTPClient(t, server.URL(), quick())
	for i := range 3 {
		if receipt := client.Send(t.Context(), envelope(i), agree); receipt.Outcome != email.OutcomeSent {
			t.Fatalf("mail %d: %+v", i, receipt)
		}
		server.Stop(t)
		server.Start(t)
	}
	if got := len(server.Messages()); got != 3 {
		t.Errorf("%d mails arrived", got)
	}
}

// TestIdleConnection: a connection is not kept for ever, and is closed with QUIT.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	said := make(chan string, 1)
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		talk.Greet()
		talk.Envelope()
		talk.Message()
		talk.Say("250 ok")
		said <- talk.Hear()
		talk.Say("221 bye")
	})
	limits := quick()
	limits.Idle = time.Millisecond
	client := newSMTPClient(t, "smtp://"+script.Address(), limits)
	if receipt := client.Send(t.Context(), envelope(1), agree); receipt.Outcome != email.OutcomeSent {
		t.Fatalf("%+v", receipt)
	}
	if line := waittest.Receive(t, "the idle connection's end", said); line != "QUIT" {
		t.Errorf("the idle connection ended with %q", line)
	}
}

func TestCloseEndsConnections(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	script := emailtest.NewScript(t, func(talk *emailtest.Talk) {
		defer close(ended)
		talk.Greet()
		talk.Envelope()
		talk.Message()
		talk.Say("250 ok")
		talk.Silence()
	})
	client := newSMTPClient(t, "smtp://"+script.Address(), quick())
	if receipt := client.Send(t.Context(), envelope(1), agree); receipt.Outcome != email.OutcomeSent {
		t.Fatalf("%+v", receipt)
	}
	client.Close()
	waittest.Receive(t, "the connection's end", ended)
}

func TestConcurrentSending(t *testing.T) {
	t.Parallel()
	certificate := emailtest.Certificate(true)
	server := emailtest.NewServer(t, emailtest.Options{TLS: &certificate})
	client := newSMTPClient(t, server.URL(), email.DefaultLimits())
	const workers, each = 8, 25
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range each {
				receipt := client.Send(t.Context(), envelope(worker*each+i), agree)
				if receipt.Outcome != email.OutcomeSent {
					t.Errorf("%+v", receipt)
				}
			}
		})
	}
	group.Wait()
	seen := make(map[string]bool)
	for _, message := range server.Messages() {
		seen[message.Source] = true
	}
	if len(seen) != workers*each || len(server.Messages()) != workers*each {
		t.Errorf("%d mails arrived, %d of them different", len(server.Messages()), len(seen))
	}
	if got := server.Sessions(); got > 3*workers {
		t.Errorf("%d mails took %d connections", workers*each, got)
	}
}

// TestSlowDial bounds the time to connect.
func TestSlowDial(t *testing.T) {
	t.Parallel()
	// A listener whose queue is full makes connections wait.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client := newSMTPClient(t, "smtp://"+listener.Addr().String(), quick())
	began := time.Now()
	receipt := client.Send(t.Context(), envelope(1), agree)
	if receipt.Outcome != email.OutcomeTemporary || time.Since(began) > 30*time.Second {
		t.Errorf("after %s: %+v", time.Since(began), receipt)
	}
}
