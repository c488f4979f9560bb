package main

import (
	"bytes"
	"net/http"
	"testing"
	"time"
)

func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, secured := range []bool{false, true} {
		t.Run(schemeName(secured), func(t *testing.T) {
			t.Parallel()
			var bodies [][]byte
			r, err := newReceivers(t.Context(), 2, secured, func(at time.Time, body []byte) {
				if at.IsZero() {
					t.Error("the arrival has no time")
				}
				bodies = append(bodies, body)
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.close() })
			client := r.client(1)
			t.Cleanup(client.CloseIdleConnections)
			for _, url := range r.urls {
				if err := post(t.Context(), client, url, sampleBody); err != nil {
					t.Fatal(err)
				}
			}
			probe, err := http.NewRequestWithContext(t.Context(), http.MethodHead, r.urls[0], http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			probe.Header.Set("x-drawbridge-probe", "true")
			if looked, err := client.Do(probe); err != nil || looked.StatusCode != http.StatusOK {
				t.Errorf("a probe was answered %v (%v)", looked, err)
			}
			if err := r.check(2); err != nil || len(bodies) != 2 || !bytes.Equal(bodies[1], sampleBody) {
				t.Errorf("%d bodies arrived (%v)", len(bodies), err)
			}
			response, err := client.Post(r.urls[0], "application/json", bytes.NewReader(sampleBody))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("an unsigned POST was answered %s", response.Status)
			}
			if err := r.check(2); err == nil {
				t.Error("a refused request passed the check")
			}
		})
	}
}
