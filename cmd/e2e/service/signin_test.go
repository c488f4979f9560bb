package service

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

const (
	// mostSignInMemory limits the process's memory while 200 people sign in at once,
	// and restMemory afterwards, in MiB.
	mostSignInMemory = 400
	restMemory       = 150
)

// TestManySignInsDoNotHoldMemory lets 200 people sign in at the same moment, each from a
// different address: the memory is bounded, and is returned to the system.
func TestManySignInsDoNotHoldMemory(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_TRUSTED_PROXIES"] = "127.0.0.0/8"
	s := w.Serve("--roles", "console")
	client := &http.Client{Timeout: time.Minute}
	var wrong sync.WaitGroup
	for i := range 200 {
		wrong.Go(func() {
			status, retry := signInFrom(t, client, s.URL, i)
			if status != http.StatusUnauthorized &&
				(status != http.StatusServiceUnavailable || retry == "") {
				t.Errorf("sign-in %d is answered %d (Retry-After %q)", i, status, retry)
			}
		})
	}
	wrong.Wait()
	got := peakMemory(t, s)
	if t.Logf("200 sign-ins took %d MiB at most", got); got > mostSignInMemory {
		t.Errorf("that is more than %d MiB", mostSignInMemory)
	}
	waittest.Within(t, time.Minute, fmt.Sprintf("at most %d MiB are held", restMemory), func() bool {
		got = memory(t, s, "VmRSS:")
		return got <= restMemory
	})
	t.Logf("%d MiB are held afterwards", got)
}

// signInFrom tries a wrong password for the i-th account from the i-th address.
func signInFrom(t *testing.T, client *http.Client, origin string, i int) (int, string) {
	t.Helper()
	form := url.Values{"email": {fmt.Sprintf("u%d@x.example", i)}, "password": {"wrong password"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		origin+"/console/sign-in", strings.NewReader(form.Encode()))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
	response, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	_, err = io.Copy(io.Discard, response.Body)
	if closeErr := response.Body.Close(); err != nil || closeErr != nil {
		t.Error(err, closeErr)
	}
	return response.StatusCode, response.Header.Get("Retry-After")
}
