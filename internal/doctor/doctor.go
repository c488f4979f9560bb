// Package doctor checks what the service depends on, and says what to do.
package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
)

// checkupTimeout bounds one check of the doctor.
const checkupTimeout = 10 * time.Second

// Finding is how a check ended.
type Finding string

// The findings.
const (
	OK      Finding = "ok"
	Warning Finding = "warning"
	Failed  Finding = "failed"
	Skipped Finding = "skipped"
)

// Checkup is one thing that the doctor looked at.
type Checkup struct {
	Name    string  `json:"name"`
	Finding Finding `json:"finding"`
	// Detail says what was found, Remedy what to do about it.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Failure is a check that ended with an error.
func Failure(name string, err error, remedy string) Checkup {
	return Checkup{Name: name, Finding: Failed, Detail: Sentence(err), Remedy: remedy}
}

// Services checks what needs more than the database. The way out is tried to the
// given URLs, or without any to the newest subscriptions' hosts.
func Services(ctx context.Context, s *app.Services, https []string) []Checkup {
	var found []Checkup
	for _, examine := range []func(ctx context.Context, s *app.Services) []Checkup{
		examineReplica, examineCondition, examineKeys, examineStopped, examineDemo, examineQuarantine,
		examineBucket, examineMail,
		func(ctx context.Context, s *app.Services) []Checkup { return examineWayOut(ctx, s, https) },
	} {
		ctx, cancel := context.WithTimeout(ctx, checkupTimeout)
		found = append(found, examine(ctx, s)...)
		cancel()
	}
	return found
}

// capital begins a sentence.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Sentence makes an error fit for people.
func Sentence(err error) string {
	text := lending.OneLine(err)
	if deadline := context.DeadlineExceeded; errors.Is(err, deadline) {
		text = strings.ReplaceAll(text, deadline.Error(), "no answer in time")
	}
	return capital(text) + "."
}
