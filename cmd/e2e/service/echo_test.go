package service

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

// TestDumpHoldsNoEchoedSecret lets an endpoint echo the secrets that it gets, in its body and
// a header and in every usual encoding, and searches a dump of the database for them, as text
// and in hexadecimal digits.
func TestDumpHoldsNoEchoedSecret(t *testing.T) {
	t.Parallel()
	const token, key = `tok/en<of>"sixteen"&more`, "s3cr"
	forms := func(secret string) []string {
		escaped, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		return []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
			strings.Trim(string(escaped), `"`), base64.StdEncoding.EncodeToString([]byte(secret)),
			base64.RawURLEncoding.EncodeToString([]byte(secret)),
		}
	}
	echo := strings.Join(append(forms(token), forms(key)...), " and ")
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("x-pin") != key {
			t.Errorf("the endpoint got %q and %q", r.Header.Get("Authorization"), r.Header.Get("x-pin"))
		}
		w.Header().Set("x-echo", echo)
		_, _ = io.WriteString(w, "you said "+echo)
	}))
	t.Cleanup(end.Close)
	w := e2etest.New(t)
	data := w.DemoData()
	w.Subscribe(data, end.URL,
		"--auth", "bearer", "--secret", token, "--header", "x-pin: "+key)
	s := w.Serve()
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	w.WaitForState(onlyDelivery(w), "delivered")
	dump := readBytes(t, w.Tool("pg_dump", w.Env["DATABASE_URL"]))
	if !strings.Contains(dump, "you said ") {
		t.Fatal("the dump does not hold the answer")
	}
	for _, form := range append(forms(token), forms(key)...) {
		if at := strings.Index(dump, form); at >= 0 {
			t.Errorf("the dump holds %q in %q", form, dump[max(at-100, 0):min(at+100, len(dump))])
		}
	}
}

// readBytes returns a dump with the values of type bytea decoded. A search of their
// digits would find "s3cr" wherever an id ends with 7367: the digits of "7367-" contain
// those of "s3cr", shifted by half a byte.
func readBytes(t *testing.T, dump string) string {
	t.Helper()
	values := regexp.MustCompile(`\\\\x(?:[0-9a-f]{2})+`)
	return values.ReplaceAllStringFunc(dump, func(value string) string {
		held, err := hex.DecodeString(value[len(`\\x`):])
		if err != nil {
			t.Fatal(err)
		}
		return string(held)
	})
}

// onlyDelivery waits for a delivery and returns its uid.
func onlyDelivery(w *e2etest.Harness) string {
	w.T.Helper()
	for {
		var list struct {
			Deliveries []e2etest.Delivery `json:"deliveries"`
		}
		w.JSON(&list, "delivery", "list", "--limit", "1")
		if len(list.Deliveries) == 1 {
			return list.Deliveries[0].UID.String()
		}
		if err := w.T.Context().Err(); err != nil {
			w.T.Fatal(err)
		}
	}
}
