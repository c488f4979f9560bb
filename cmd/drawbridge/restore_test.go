package main

import (
	"strings"
	"testing"
)

// TestAReleaseNeedsAReason: the record of who ended a quarantine gives a reason, in one line.
func TestAReleaseNeedsAReason(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	d.text(t, "restore", "hold", "--reason", "taken back to noon")
	for _, reason := range []string{"", " ", "a\nb", "a\x00b", strings.Repeat("x", 501)} {
		got := d.run(t, "restore", "release", "--deliveries", "send", "--mails", "send",
			"--reason", reason)
		if got.status != exitUsage || !strings.Contains(got.stderr, "--reason") {
			t.Errorf("the reason %.10q ended with %+v", reason, got)
		}
		if shown := d.document(t, "restore", "show"); shown["held"] != true {
			t.Fatalf("after the reason %.10q it is %v", reason, shown)
		}
	}
	d.text(t, "restore", "release", "--deliveries", "send", "--mails", "send",
		"--reason", " compared ")
	entries := list(t, d.document(t, "audit", "list", "--action", "restore.release"), "entries")
	if len(entries) != 1 || entries[0]["reason"] != "compared" {
		t.Errorf("the audit log says %v", entries)
	}
}
