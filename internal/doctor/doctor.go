// Package doctor checks what the service depends on, and says how to fix it.
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

// Finding is the result of a check.
type Finding string

// The findings.
const (
	OK      Finding = "ok"
	Warning Finding = "warning"
	Failed  Finding = "failed"
	Skipped Finding = "skipped"
)

// Checkup is one check of the doctor.
type Checkup struct {
	Name    string  `json:"name"`
	Finding Finding `json:"finding"`
	// Detail says what was found, Remedy how to fix it.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

// Failure returns a check that ended with an error.
func Failure(name string, err error, remedy string) Checkup {
	return Checkup{Name: name, Finding: Failed, Detail: Sentence(err), Remedy: remedy}
}

// mayRead is the remedy if the database denies access.
const mayRead = "Check that the user of DATABASE_URL may read the tables."

// Services checks what needs more than the database. Outgoing HTTPS is tried to the given URLs
// or, if there are none, to the newest subscriptions' hosts.
func Services(ctx context.Context, s *app.Services, https []string) []Checkup {
	var found []Checkup
	for _, check := range []struct {
		name string
		// early is set for checks that need no schema.
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
			return examineHTTPS(ctx, s, https)
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

// isBehind reports whether the schema is not current or cannot be checked.
func isBehind(ctx context.Context, s *app.Services) bool {
	missing, err := migrations.Pending(ctx, s.DB.DB.DB)
	return err != nil || len(missing) > 0
}

// grade returns the finding for a value of which less is better.
func grade[N cmp.Ordered](value, warning, failed N) Finding {
	switch {
	case value >= failed:
		return Failed
	case value >= warning:
		return Warning
	}
	return OK
}

// capital capitalises the first letter of a sentence.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Sentence words an error as a sentence for people.
func Sentence(err error) string {
	text := lending.OneLine(err)
	if deadline := context.DeadlineExceeded; errors.Is(err, deadline) {
		text = strings.ReplaceAll(text, deadline.Error(), "no answer in time")
	}
	return capital(text) + "."
}
