// Package doctor checks what the service depends on, and says what to do.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/migrations"
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

// mayRead is the remedy where the database answers that it may not.
const mayRead = "Check that the user of DATABASE_URL may read the tables."

// Services checks what needs more than the database. The way out is tried to the
// given URLs, or without any to the newest subscriptions' hosts.
func Services(ctx context.Context, s *app.Services, https []string) []Checkup {
	var found []Checkup
	for _, check := range []struct {
		name string
		// early is what needs no schema.
		early   bool
		examine func(ctx context.Context, s *app.Services) ([]Checkup, error)
	}{
		{"replica", true, examineReplica},
		{"server", true, examineServer},
		{"condition", false, examineCondition},
		{"keys", false, examineKeys},
		{"stopped", false, examineStopped},
		{"demo", !s.Settings.Env.Hosted(), examineDemo},
		{"restore", false, examineQuarantine},
		{"bucket", true, examineBucket},
		{"mail", true, examineMail},
		{"https", len(https) > 0, func(ctx context.Context, s *app.Services) ([]Checkup, error) {
			return examineWayOut(ctx, s, https)
		}},
	} {
		ctx, cancel := context.WithTimeout(ctx, checkupTimeout)
		if !check.early && isBehind(ctx, s) {
			found = append(found, Checkup{
				Name: check.name, Finding: Skipped, Detail: "The schema has to be current first.",
			})
		} else if checkups, err := check.examine(ctx, s); err == nil {
			found = append(found, checkups...)
		} else {
			found = append(found, Failure(check.name, err, mayRead))
		}
		cancel()
	}
	return found
}

// isBehind tells that the schema cannot be seen to be current.
func isBehind(ctx context.Context, s *app.Services) bool {
	missing, err := migrations.Pending(ctx, s.DB.DB.DB)
	return err != nil || len(missing) > 0
}

// grade is the finding of a value that is better the smaller it is.
func grade[N cmp.Ordered](value, warning, failed N) Finding {
	switch {
	case value >= failed:
		return Failed
	case value >= warning:
		return Warning
	}
	return OK
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
