package sender

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// BenchmarkSend is a whole attempt over a reused connection, the endpoint's
// work included, beside a bare POST of net/http to the same endpoint.
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
