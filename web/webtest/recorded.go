package webtest

import (
	"time"

	"drawbridge/internal/apilog"
)

// recordedCalls is how many requests are kept for a test to look at.
const recordedCalls = 1000

// recorded keeps the log entries of the requests, oldest first.
type recorded chan apilog.Entry

// Record keeps an entry while there is room.
func (r recorded) Record(entry apilog.Entry) {
	select {
	case r <- entry:
	default:
	}
}

// Recorded returns the log entry of the oldest request that no call returned
// yet. It is written once the answer has left, so it may take a moment.
func (s *Server) Recorded() apilog.Entry {
	s.T.Helper()
	select {
	case entry := <-s.requests:
		return entry
	case <-time.After(time.Minute):
		s.T.Fatal("no request was recorded")
		return apilog.Entry{}
	}
}
