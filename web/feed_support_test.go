package web_test

import (
	"context"
	"sync"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/outbox"
)

// publish publishes to the feed what was recorded, as a worker does.
func publish(s *apptest.Server) {
	s.T.Helper()
	if err := s.Outbox.Drain(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

// publishing publishes until the function that it returns is called, as two workers do.
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
