package console_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"golang.org/x/net/html"

	"drawbridge/views/paths"
)

// browser is a user of the console with their own cookies. It does not follow redirects, so
// that tests can check them.
type browser struct {
	*harness
	client *http.Client
	// header is sent with every request.
	header http.Header
}

// uncompressed saves a third of the cost of a page under the race detector.
var uncompressed = &http.Transport{DisableCompression: true}

func (r *harness) stranger() *browser {
	r.Helper()
	jar, err := cookiejar.New(nil)
	r.must(err)
	return &browser{harness: r, header: http.Header{}, client: &http.Client{
		Jar: jar, Timeout: time.Minute, Transport: uncompressed,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// signedIn is a browser of the support user.
func (r *harness) signedIn() *browser {
	r.Helper()
	b := r.stranger()
	if answer := b.signIn(supportEmail, password); answer.Status != http.StatusSeeOther {
		r.Fatalf("signing in: %d %s", answer.Status, answer.text("main"))
	}
	return b
}

func (b *browser) signIn(email, password string) answer {
	b.Helper()
	return b.post(paths.SignIn, url.Values{"email": {email}, "password": {password}})
}

// answer is a received answer.
type answer struct {
	Status   int
	Header   http.Header
	Location string
	Raw      string
	// page parses Raw on first use.
	page func() *goquery.Document
}

func (a answer) find(selector string) *goquery.Selection { return a.page().Find(selector) }

// text returns the text of the selected elements, joined by single spaces.
func (a answer) text(selector string) string {
	var words []string
	a.find(selector).Each(func(_ int, element *goquery.Selection) {
		for _, node := range element.Nodes {
			for piece := range node.Descendants() {
				if piece.Type == html.TextNode {
					words = append(words, strings.Fields(piece.Data)...)
				}
			}
		}
	})
	return strings.Join(words, " ")
}

func (b *browser) get(path string) answer {
	b.Helper()
	return b.send(http.MethodGet, path, nil)
}

// post sends a new form, unless the form contains the token of an earlier one.
func (b *browser) post(path string, form url.Values) answer {
	b.Helper()
	if form = maps.Clone(form); form == nil {
		form = url.Values{}
	}
	if !form.Has("token") {
		form.Set("token", uuid.NewString())
	}
	return b.send(http.MethodPost, path, form)
}

// fragment sends requests as htmx does.
func (b *browser) fragment() *browser {
	asks := *b
	asks.header = b.header.Clone()
	asks.header.Set("HX-Request", "true")
	return &asks
}

func (b *browser) send(method, path string, form url.Values) answer {
	b.Helper()
	response := b.open(b.Context(), method, path, form)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	b.must(err)
	return answer{
		Status: response.StatusCode, Header: response.Header, Raw: string(raw),
		Location: response.Header.Get("Location"),
		page: sync.OnceValue(func() *goquery.Document {
			b.Helper()
			page, err := goquery.NewDocumentFromReader(strings.NewReader(string(raw)))
			b.must(err)
			return page
		}),
	}
}

// open sends a request and leaves the body unread.
func (b *browser) open(
	ctx context.Context, method, path string, form url.Values,
) *http.Response {
	b.Helper()
	request, err := http.NewRequestWithContext(ctx, method, b.URL+path,
		strings.NewReader(form.Encode()))
	b.must(err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	maps.Copy(request.Header, b.header)
	response, err := b.client.Do(request)
	b.must(err)
	return response
}

// wantStatus fails the test when an answer is not as expected.
func (a answer) wantStatus(t *testing.T, want int) answer {
	t.Helper()
	if a.Status != want {
		t.Fatalf("status = %d, want %d: %.300s", a.Status, want, a.Raw)
	}
	return a
}

// textOf is what an element says, trimmed.
func textOf(_ int, element *goquery.Selection) string { return strings.TrimSpace(element.Text()) }

// hmacHex signs as the specification says.
func hmacHex(key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}
