package receiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

var known = secret.New("whsec_known-to-both")

const body = `{"application_id":"a","status":"Approved","timestamp":"2026-11-21T09:30:00.000001Z"}`

// post sends a webhook as Drawbridge does and returns the status.
func post(r *Receiver, delivery string, header http.Header, text string) int {
	request := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(text))
	request.Header = header
	header.Set("x-drawbridge-delivery", delivery)
	header.Set("x-drawbridge-event", "application.status.update")
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, request)
	return answer.Code
}

// signed returns the headers of a request signed with the secret.
func signed(value secret.String, text string) http.Header {
	return http.Header{"X-Hmac-Signature": {sender.Sign(value, []byte(text))}}
}

func newest(t *testing.T, r *Receiver) Received {
	t.Helper()
	all := r.Received()
	if len(all) == 0 {
		t.Fatal("nothing came in")
	}
	return all[0]
}

func TestItSaysWhetherARequestIsGenuineOrWhyNot(t *testing.T) {
	t.Parallel()
	other := secret.New("another-secret")
	tests := []struct {
		name    string
		header  http.Header
		body    string
		genuine bool
		says    string
	}{
		{"signed", signed(known, body), body, true, "Verified"},
		{"another secret", signed(other, body), body, false, "no secret that this receiver knows"},
		{"a newline more", signed(known, body), body + "\n", false, "newline"},
		{"not hex", http.Header{"X-Hmac-Signature": {"zz"}}, body, false, "not an HMAC-SHA256"},
		{"nothing", http.Header{}, body, false, "neither a signature nor"},
		{"token", http.Header{"Authorization": {"Bearer whsec_known-to-both"}}, body, true, "token"},
		{"wrong token", http.Header{"Authorization": {"Bearer x"}}, body, false, "none that"},
		{
			"previous", http.Header{
				"X-Hmac-Signature":          {sender.Sign(other, []byte(body))},
				"X-Hmac-Signature-Previous": {sender.Sign(known, []byte(body))},
			}, body, true, "rotated",
		},
	}
	for _, test := range tests {
		r := New(time.Now, known)
		want := http.StatusUnauthorized
		if test.genuine {
			want = http.StatusNoContent
		}
		if got := post(r, "d", test.header.Clone(), test.body); got != want {
			t.Errorf("%s: answered %d, want %d", test.name, got, want)
		}
		check := newest(t, r).Check
		if check.Genuine != test.genuine || !strings.Contains(check.Text, test.says) {
			t.Errorf("%s: %+v does not say %q", test.name, check, test.says)
		}
		r.Set(Settings{Mode: ModeAccept})
		if got := post(r, "d2", test.header.Clone(), test.body); got != http.StatusNoContent {
			t.Errorf("%s: answered %d without checking", test.name, got)
		}
	}
}

func TestTheKnobs(t *testing.T) {
	t.Parallel()
	tests := map[Mode][]int{
		ModeAccept: {204, 204, 204}, ModeFail: {500, 500, 500}, ModeRecover: {503, 503, 204},
		ModeRedirect: {307, 307, 307},
	}
	for mode, want := range tests {
		r := New(time.Now, known)
		if !r.Set(Settings{Mode: mode, Verify: true}) {
			t.Fatalf("%s is unknown", mode)
		}
		for i, status := range want {
			if got := post(r, "d", signed(known, body), body); got != status {
				t.Errorf("%s: attempt %d is answered %d, want %d", mode, i+1, got, status)
			}
		}
	}
	r := New(time.Now)
	if r.Set(Settings{Mode: "explode"}) || r.Settings().Mode != ModeAccept {
		t.Error("an unknown mode was set")
	}
}

func TestASlowAnswerComesAfterTheDeadline(t *testing.T) {
	t.Parallel()
	r := New(time.Now, known)
	if r.Slow <= sender.DefaultTimeout {
		t.Errorf("slow is %s: the endpoint has %s", r.Slow, sender.DefaultTimeout)
	}
	r.Slow = time.Minute
	r.Set(Settings{Mode: ModeSlow})
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	attempt := send(t, server.URL, 50*time.Millisecond)
	if attempt.Class != sender.ClassTimeout {
		t.Errorf("the attempt ended with %q: %s", attempt.Class, attempt.Error)
	}
}

// send makes one attempt as Drawbridge does.
func send(t *testing.T, address string, limit time.Duration) sender.Attempt {
	t.Helper()
	send := sender.New(sender.Config{
		Policy: sender.Policy{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
		},
		Timeout: limit,
	})
	t.Cleanup(send.Close)
	return send.Send(t.Context(), sender.Request{
		URL: address, Event: sender.Identity{Kind: "task.created"}, Delivery: "d", Number: 1,
		Auth: sender.AuthHMAC, Secret: known, Body: []byte(body),
	})
}

func TestTheWrongCertificateIsRefused(t *testing.T) {
	t.Parallel()
	r := New(time.Now, known)
	stop, err := r.ServeWrongCertificate()
	if err != nil {
		t.Fatal(err)
	}
	attempt := send(t, r.WrongAddress(), time.Minute)
	if attempt.Class != sender.ClassTLS || attempt.Sent {
		t.Errorf("the attempt ended with %q: %s", attempt.Class, attempt.Error)
	}
	if len(r.Received()) != 0 {
		t.Error("a request got through")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if after := send(t, r.WrongAddress(), time.Minute); after.Class != sender.ClassConnect {
		t.Errorf("after the end the attempt ended with %q", after.Class)
	}
}

func TestDuplicatesAreTold(t *testing.T) {
	t.Parallel()
	r := New(time.Now, known)
	r.Set(Settings{Mode: ModeFail})
	post(r, "first", signed(known, body), body)
	r.Set(Settings{Mode: ModeAccept})
	for _, step := range []struct{ delivery, says string }{
		{"first", "Another attempt of number 1, which was answered 500"},
		{"first", "came before as number 2, and was confirmed"},
		{"second", "in another delivery"},
	} {
		post(r, step.delivery, signed(known, body), body)
		if got := newest(t, r).Duplicate; !strings.Contains(got, step.says) {
			t.Errorf("%q does not say %q", got, step.says)
		}
	}
	post(r, "third", http.Header{}, "no JSON at all")
	if got := newest(t, r).Duplicate; got != "" {
		t.Errorf("something new is called %q", got)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	r := New(time.Now, known)
	for i := range maxKept + 7 {
		post(r, fmt.Sprint(i), signed(known, body), body)
	}
	if got := r.Received(); len(got) != maxKept || got[0].Number != maxKept+7 {
		t.Errorf("%d are remembered, the newest is %d", len(got), got[0].Number)
	}
	r.Clear()
	if len(r.Received()) != 0 {
		t.Error("it did not forget")
	}
	for i := range 2 * maxSecrets {
		r.Learn(secret.New(fmt.Sprint("secret-", i)))
		r.Learn(secret.New(fmt.Sprint("secret-", i)))
	}
	if len(r.secrets) != maxSecrets {
		t.Errorf("%d secrets are known", len(r.secrets))
	}
	if post(r, "x", signed(secret.New(fmt.Sprint("secret-", 2*maxSecrets-1)), body), body) != 204 {
		t.Error("the latest secret is not known")
	}
}
