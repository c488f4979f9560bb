package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// TestAnEmptyFlagIsRefused: a filter from a variable that a script has not set would be no filter,
// and so would extend a re-send to everybody.
func TestAnEmptyFlagIsRefused(t *testing.T) {
	t.Parallel()
	const uid = "0190d3c2-0000-7000-8000-000000000001"
	// No server answers there: a command that is not refused fails with another error.
	d := &cli{variables: map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/none"}}
	filters := []string{"subscription", "state", "event", "application", "since", "until"}
	for command, flags := range map[string][]string{
		"delivery resend":            append(slices.Clip(filters), "reason"),
		"delivery resend --since 1d": {"subscription", "state"},
		"email resend":               {"state", "application", "kind", "since", "until", "reason"},
		"bulk create":                append(slices.Clip(filters), "partner", "reason"),
		"doctor":                     {"https"},
		"listen --url http://127.0.0.1:1/api --client-id c --client-secret-file /none " +
			"--forward http://127.0.0.1:1/": {"event"},
		"subscription update " + uid: {
			"url", "auth", "secret", "event", "header", "secret-header", "plain-header", "keep-header",
			"merchant", "retry", "reason",
		},
	} {
		for _, flag := range flags {
			for _, given := range [][]string{{"--" + flag, ""}, {"--" + flag + "="}} {
				got := d.run(t, append(strings.Fields(command), given...)...)
				if got.status != exitUsage || !strings.Contains(got.stderr, "--"+flag+" is empty") {
					t.Errorf("%s %q ended with %+v", command, given, got)
				}
			}
		}
	}
	nothing := uuid.Nil.String() // which filters take for an absent flag
	for _, line := range []string{
		"delivery resend --state failed --subscription", "delivery list --application",
		"bulk create --subscription", "email list --application", "subscription list --partner",
	} {
		got := d.run(t, append(strings.Fields(line), nothing)...)
		if got.status != exitUsage || !strings.Contains(got.stderr, "which is the nil UUID") {
			t.Errorf("%s %s ended with %+v", line, nothing, got)
		}
	}
	got := d.run(t, "subscription", "update", uid, "--event", "task.created", "--event", "")
	if got.status != exitUsage || !strings.Contains(got.stderr, "--event is empty") {
		t.Errorf("an empty one of several ended with %+v", got)
	}
	for _, line := range []string{"subscription update " + uid + " --name", "partner update " + uid +
		" --contact"} {
		got := d.run(t, append(strings.Fields(line), "")...)
		if got.status != exitFailed || strings.Contains(got.stderr, "is empty") {
			t.Errorf("%s '' ended with %+v", line, got)
		}
	}
}
