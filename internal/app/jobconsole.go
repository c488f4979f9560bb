package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/riverqueue/river"
	"riverqueue.com/riverui"

	"drawbridge/internal/email"
	"drawbridge/internal/queue"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/jobs"
	"drawbridge/views/paths"
)

// Queues serves the job queues.
func (s *Services) Queues() *queue.Service {
	return &queue.Service{
		DB: s.DB, Jobs: s.Jobs,
		Names: []string{river.QueueDefault, email.Queue, delivery.Queue, bulk.Queue},
	}
}

// jobConsole is the queue library's own console. Its background work begins with the first visitor,
// so that it costs nothing until then.
type jobConsole struct {
	handler *riverui.Handler
	begin   sync.Once
}

func (s *Services) newJobConsole() (http.Handler, error) {
	handler, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints:                riverui.NewEndpoints(s.Jobs, nil),
		JobListHideArgsByDefault: true,
		Logger:                   jobs.QueueLogger(),
		Prefix:                   paths.JobConsole,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the console of the queue: %w", err)
	}
	return &jobConsole{handler: handler}, nil
}

// ServeHTTP starts the console on the first request.
func (c *jobConsole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.begin.Do(func() {
		// The console lives as long as the process, not as the request that started it.
		if err := c.handler.Start(context.WithoutCancel(r.Context())); err != nil {
			slog.ErrorContext(r.Context(), "starting the console of the queue", "error", err)
		}
	})
	c.handler.ServeHTTP(w, r)
}
