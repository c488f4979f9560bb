package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/web/docs"
)

// publish publishes the recorded events to the feed, as a worker does.
func publish(s *apptest.Server) {
	s.T.Helper()
	if err := s.Outbox.Drain(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

// publishing publishes like two workers until the returned function is called.
func publishing(s *apptest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(s.T.Context())
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() { outbox.New(s.DB).Run(ctx) })
	}
	return func() {
		cancel()
		working.Wait()
	}
}

// checkGaps compares the events of an application that a subscription to all is sent with
// the guides: the two kinds that are not sent leave gaps, which are not losses.
func checkGaps(s *apptest.Server, receiver uuid.UUID, all []eventObject) {
	s.T.Helper()
	answer := s.Get("/v2/deliveries?subscription_uid=" + receiver.String())
	var page struct{ Deliveries []sentRow }
	if err := json.Unmarshal(answer.Result.Data, &page); err != nil {
		s.T.Fatal(err)
	}
	var left, missing []string
	for _, event := range all {
		if lending.EventKind(event.Event).IsOptIn() {
			left = append(left, event.Event)
		}
		if !slices.ContainsFunc(page.Deliveries, func(sent sentRow) bool {
			return *sent.Sequence == event.Sequence
		}) {
			missing = append(missing, event.Event)
		}
	}
	if diff := cmp.Diff(left, missing); diff != "" || len(left) != 2 {
		s.T.Errorf("what a subscription to all is not sent (-left out +missing):\n%s", diff)
	}
	site := strings.TrimSuffix(s.URL, apptest.BasePath) + docs.Prefix
	for _, guide := range []string{"/webhooks.md", "/catch-up.md", "/going-live.md"} {
		text := fetched(s, site+guide)
		for _, kind := range left {
			if !strings.Contains(text, kind) {
				s.T.Errorf("%s does not say that all leaves %s out", guide, kind)
			}
		}
	}
}

// fetched returns the text at an address.
func fetched(s *apptest.Server, address string) string {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.T.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		s.T.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.T.Fatalf("%s answered %d %v", address, answer.StatusCode, err)
	}
	return string(text)
}
