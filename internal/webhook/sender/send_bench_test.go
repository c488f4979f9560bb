package sender

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/secret"
)

// BenchmarkSend is a whole attempt over a reused connection, including the endpoint's
// work; compare it with a bare POST of net/http to the same endpoint.
func BenchmarkSend(b *testing.B) {
	ca := newAuthority(b)
	for _, bench := range []struct {
		name   string
		target func() (*Sender, Request)
	}{
		{"plain", func() (*Sender, Request) {
			return newTestSender(b, nil), hook(serve(b, nil, respond(ok200)).plain())
		}},
		{"TLS", func() (*Sender, Request) {
			end := serve(b, ca.issue(b, hookName, -time.Hour, time.Hour), respond(ok200))
			return newTestSender(b, func(c *Config) { c.RootCAs = ca.pool }), hook(end.secure())
		}},
		{"HTTP2", func() (*Sender, Request) {
			end := serveHTTP2(b, ca, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "ok")
			})
			return newTestSender(b, func(c *Config) { c.RootCAs = ca.pool }), end.hook()
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			sender, request := bench.target()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if attempt := sender.Send(b.Context(), request); !attempt.Delivered() {
						b.Error(attempt.Error)
						return
					}
				}
			})
		})
	}
}

// BenchmarkBarePost is the floor: net/http, no signature, no log.
func BenchmarkBarePost(b *testing.B) {
	end := serve(b, nil, respond(ok200))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	body := string(testBody)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Post(end.plain(), "application/json", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	client.CloseIdleConnections()
}

// BenchmarkMask searches the longest answer that is kept for the secrets of a request.
func BenchmarkMask(b *testing.B) {
	const item = `{"id": 4711, "name": "Ada Lovelace", "path": "\/orders\/4711", ` +
		`"note": "100 % \u2713"},` + "\n"
	text := strings.Repeat(item, (maxBody+maxEcho)/len(item))
	r := Request{Auth: AuthHMAC, Secret: secret.New("whsec-0123456789abcdef0123456789abcdef")}
	for _, many := range []int{1, 50} {
		for i := len(r.Headers); i < many; i++ {
			value := fmt.Sprintf("key-%02d-abcdefghijklmnop", i)
			r.Headers = append(r.Headers, Header{Name: fmt.Sprint("x-key-", i), Value: value})
		}
		secrets := secretsOf(r)
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if secrets.mask(text, false) != text {
					b.Fatal("something was masked")
				}
			}
		})
	}
}
