package web_test

import (
	"context"
	"sync"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/feed"
)

// publish publishes to the feed what was recorded, as a worker does.
func publish(s *apptest.Server) {
	s.T.Helper()
	publisher := feed.Publisher{DB: s.DB}
	for {
		count, err := publisher.Publish(s.T.Context())
		if err != nil {
			s.T.Fatal(err)
		}
		if count == 0 {
			return
		}
	}
}

// publishing publishes until the function that it returns is called, as two workers do.
func publishing(s *apptest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(s.T.Context())
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() { (&feed.Publisher{DB: s.DB}).Run(ctx) })
	}
	return func() {
		cancel()
		working.Wait()
	}
}
