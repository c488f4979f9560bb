package console_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// stream is an open event stream.
type stream struct {
	*browser
	reader *bufio.Reader
	body   io.Closer
	// ended is why there is no next message.
	ended error
}

// listen opens an event stream.
func (b *browser) listen(path string) *stream {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), waittest.Patience)
	b.Cleanup(cancel)
	response := b.open(ctx, http.MethodGet, path, nil)
	b.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK ||
		response.Header.Get("Content-Type") != "text/event-stream" {
		b.Fatalf("%s answers %d %s", path, response.StatusCode, response.Header.Get("Content-Type"))
	}
	return &stream{browser: b, reader: bufio.NewReader(response.Body), body: response.Body}
}

// next returns the next message as a page, and false when the stream ended.
func (s *stream) next() (*goquery.Document, bool) {
	s.Helper()
	var html strings.Builder
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			s.ended = err
			return nil, false
		}
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			html.WriteString(text + "\n")
		} else if line == "" && html.Len() > 0 {
			page, err := goquery.NewDocumentFromReader(strings.NewReader(html.String()))
			s.must(err)
			return page, true
		}
	}
}

// until reads messages until holds returns true.
func (s *stream) until(what string, holds func(*goquery.Document) bool) {
	s.Helper()
	for {
		page, ok := s.next()
		if !ok {
			s.Fatalf("the stream ended before %s", what)
		}
		if holds(page) {
			return
		}
	}
}

// TestResendArrivesWithoutReload re-sends while the page is open and expects the new
// delivery to appear and to reach the partner.
func TestResendArrivesWithoutReload(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	delivery, _ := r.delivered(status(http.StatusBadGateway), status(http.StatusOK))
	r.fail(delivery)
	open := b.listen(paths.To(paths.DeliveryLive, delivery.UID.String()))
	open.until("the page is there", func(page *goquery.Document) bool {
		return page.Find("#attempt-1").Length() == 1 && page.Find("[id^=resend-]").Length() == 0
	})
	b.post(paths.To(paths.Resend, delivery.UID.String()), url.Values{})
	made := r.list()[0]
	chip := func(page *goquery.Document) string {
		return strings.TrimSpace(page.Find("#resend-" + made.UID.String() + " .chip").Text())
	}
	open.until("the re-send appears", func(page *goquery.Document) bool {
		return chip(page) == "Pending"
	})
	r.work()
	open.until("the re-send arrives", func(page *goquery.Document) bool {
		return chip(page) == "Delivered"
	})
}

func TestListStreamsChangesAndCountsNews(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	endpoint := r.receiver()
	r.subscribe(endpoint.URL)
	shown := r.publish("Approved")[0]
	address, _ := b.get(paths.Deliveries).find("#live").Attr("hx-sse:connect")
	open := b.listen(address)
	row := "#d-" + ui.RowID(shown.UID) + " .chip"
	open.until("the row is there", func(page *goquery.Document) bool {
		return strings.TrimSpace(page.Find(row).Text()) == "Pending"
	})
	r.publish("Closed")
	open.until("the new delivery is counted", func(page *goquery.Document) bool {
		return strings.Contains(page.Find(".news").Text(), "1 new delivery")
	})
	r.work()
	open.until("the shown row changes in its place", func(page *goquery.Document) bool {
		return page.Find("tbody tr").Length() == 1 &&
			strings.TrimSpace(page.Find(row).Text()) == "Delivered"
	})
}

func TestStreamKeepsCarriageReturns(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	delivery, _ := r.delivered(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("a\r\nb\rc"))
	})
	open := b.listen(paths.To(paths.DeliveryLive, delivery.UID.String()))
	open.until("the body can be copied as it came", func(page *goquery.Document) bool {
		copied, _ := page.Find("#attempt-1 [data-tab=Response] [data-copy]").Attr("data-copy")
		return copied == "a\r\nb\rc"
	})
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(r *harness)
	}{
		{"when the server stops", func(r *harness) { r.Console.Close() }},
		{"when the user is disabled", func(r *harness) {
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := r.Operators.Disable(ctx, tx, supportEmail)
				return err
			})
			r.ahead.Store(int64(16 * time.Second))
		}},
		{"when it grows old", func(r *harness) { r.ahead.Store(int64(11 * time.Minute)) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			open := r.signedIn().listen(paths.DeliveriesLive)
			if _, ok := open.next(); !ok {
				t.Fatal("the stream ended at once")
			}
			test.end(r)
			for {
				if _, ok := open.next(); !ok {
					break
				}
			}
			if !errors.Is(open.ended, io.EOF) {
				t.Errorf("the stream broke: %v", open.ended)
			}
		})
	}
}

func TestStreamRefusals(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	b.get(paths.DeliveriesLive+"?state=resting").wantStatus(t, http.StatusBadRequest)
	b.get(paths.To(paths.DeliveryLive, "17")).wantStatus(t, http.StatusNotFound)
}
