package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// auditedChanges are commands that change something, with the expected audit log entries.
var auditedChanges = []struct {
	line, stdin, action string
	before, after       map[string]any
}{
	{
		"client rate CLIENT --rate 20 --burst 40", "", "client.rate",
		map[string]any{"rate_per_second": 50.0, "burst": 100.0},
		map[string]any{"rate_per_second": 20.0, "burst": 40.0},
	},
	{
		"client rotate --overlap 0s CLIENT", "", "client.rotate",
		map[string]any{"previous_valid_until": nil},
		map[string]any{"previous_valid_until": nil},
	},
	{
		"client revoke CLIENT", "", "client.revoke",
		map[string]any{"revoked": false},
		map[string]any{"revoked": true},
	},
	{
		"user password support@drawbridge.example --must-change", "a long enough passphrase",
		"user.password",
		map[string]any{"must_change_password": false},
		map[string]any{"must_change_password": true},
	},
	{
		"user disable support@drawbridge.example", "", "user.disable",
		map[string]any{"disabled": false},
		map[string]any{"disabled": true},
	},
	{
		"queue pause email", "", "queue.pause",
		map[string]any{"paused": false},
		map[string]any{"paused": true},
	},
	{
		"queue resume email", "", "queue.resume",
		map[string]any{"paused": true},
		map[string]any{"paused": false},
	},
	{
		"application hold --reason case LOAN", "", "application.hold",
		map[string]any{"held": false},
		map[string]any{"reason": "case"},
	},
	{
		"application release --reason over LOAN", "", "application.release",
		map[string]any{"reason": "case", "released_by": nil},
		map[string]any{"released_by": "command line"},
	},
	{
		"subscription restore --version 1 SUBSCRIPTION", "", "subscription.restore",
		map[string]any{"version": 2.0},
		map[string]any{"version": 3.0},
	},
	{
		"restore hold --reason test", "", "restore.hold",
		map[string]any{"held": false},
		map[string]any{"held": true},
	},
	{
		"restore release --deliveries send --mails send --reason test", "", "restore.release",
		map[string]any{"held": true},
		map[string]any{"held": false},
	},
	{"backup record", "", "backup.record", map[string]any{"backed_up_at": nil}, nil},
	{
		"bulk confirm BULK --reason test", "", "bulk_resend.confirm",
		map[string]any{"state": "draft"},
		map[string]any{"state": "running"},
	},
	{
		"bulk pause BULK", "", "bulk_resend.pause",
		map[string]any{"state": "running"},
		map[string]any{"state": "paused"},
	},
	{
		"bulk resume BULK", "", "bulk_resend.resume",
		map[string]any{"state": "paused"},
		map[string]any{"state": "running"},
	},
	{
		"bulk cancel BULK", "", "bulk_resend.cancel",
		map[string]any{"state": "running"},
		map[string]any{"state": "cancelled"},
	},
}

// TestTheAuditLogSaysWhatWasBefore: the entry of each change has the states before and after.
func TestTheAuditLogSaysWhatWasBefore(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	data := d.document(t, "demo")
	owner := list(t, data, "partners")[0]
	subscription := d.document(t, "subscription", "create", "--partner",
		fmt.Sprint(owner["partner_uid"]), "--url", "https://hooks.example.com/a", "--auth", "none",
		"--event", "all")["subscription_uid"]
	d.document(t, "subscription", "update", fmt.Sprint(subscription),
		"--url", "https://hooks.example.com/b")
	d.document(t, "seed", "--deliveries", "20", "--attempts", "20", "--partners", "1", "--days", "2")
	sent := list(t, d.document(t, "delivery", "list", "--state", "delivered"), "deliveries")
	if url := sent[0]["url"]; url == nil || url == "" {
		t.Errorf("a delivery is listed without the endpoint that the text shows: %v", sent[0])
	}
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// As a worker would create it.
	_, err = db.ExecContext(t.Context(), `
		INSERT INTO river_queue (name, created_at, updated_at) VALUES ('email', now(), now())`)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer(
		"CLIENT", fmt.Sprint(list(t, owner, "clients")[0]["client_id"]),
		"LOAN", fmt.Sprint(list(t, data, "loans")[0]["loan_application_uid"]),
		"SUBSCRIPTION", fmt.Sprint(subscription),
		"BULK", fmt.Sprint(d.document(t, "bulk", "create",
			fmt.Sprint(sent[0]["delivery_uid"]))["bulk_uid"]),
	)
	for _, change := range auditedChanges {
		got := d.runWith(t, change.stdin, strings.Fields(names.Replace(change.line))...)
		if got.status != exitOK {
			t.Errorf("%s ended with %+v", change.line, got)
			continue
		}
		d.wantAudited(t, change.action, change.before, change.after)
	}
	// An id's entries are found however the id is typed.
	for line, uid := range map[string]any{
		"delivery resend":                   sent[1]["delivery_uid"],
		"product update --overdue-hours 20": list(t, data, "products")[0]["product_uid"],
	} {
		d.text(t, append(strings.Fields(line), strings.ToUpper(fmt.Sprint(uid)))...)
		found := d.document(t, "audit", "list", "--subject", fmt.Sprint(uid))
		if len(list(t, found, "entries")) != 1 {
			t.Errorf("%s of %s in capitals left %v", line, uid, found)
		}
	}
}

// TestTheAuditLogSaysOnlyWhatChanged: a repeated command changes nothing and writes no entry.
func TestTheAuditLogSaysOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	d.text(t, "demo")
	for _, line := range []string{
		"client revoke " + partner.DemoCredentials(partner.DemoPlain).ClientID,
		"user disable support@drawbridge.example",
	} {
		words := strings.Fields(line)
		first := d.document(t, words...)
		if again := d.document(t, words...); !cmp.Equal(first, again) {
			t.Errorf("%s printed %v, and then %v", line, first, again)
		}
		action := words[0] + "." + words[1]
		got := list(t, d.document(t, "audit", "list", "--action", action), "entries")
		if len(got) != 1 {
			t.Errorf("%s twice made %d entries", line, len(got))
		}
	}
}

// TestACommandSeesTheChangeThatItWaitsFor: of two simultaneous changes the later one keeps what the
// other changed, and its entry has that state as the one before.
func TestACommandSeesTheChangeThatItWaitsFor(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner := fmt.Sprint(d.document(t, "partner", "create", "--name", "North")["partner_uid"])
	hook := fmt.Sprint(d.document(t, "subscription", "create", "--partner", owner, "--url",
		"https://hooks.example.com/a", "--auth", "none", "--event", "all")["subscription_uid"])
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, test := range []struct {
		other, line   string
		before, after map[string]any
	}{
		{
			`UPDATE retention_settings SET body_days = 45`, "retention set --metadata-months 24",
			map[string]any{"metadata_months": 13.0, "body_days": 45.0},
			map[string]any{"metadata_months": 24.0, "body_days": 45.0},
		},
		{
			`UPDATE subscriptions SET rate = 3`, "subscription update --name North " + hook,
			map[string]any{"rate": 3.0},
			map[string]any{"rate": 3.0},
		},
		{
			`UPDATE subscriptions SET rate = 4`, "subscription pause " + hook,
			map[string]any{"rate": 4.0},
			map[string]any{"rate": 4.0},
		},
		{
			`UPDATE subscriptions SET version = version + 5`,
			"subscription restore --version 1 " + hook,
			map[string]any{"version": 8.0},
			nil,
		},
	} {
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), test.other); err != nil {
			t.Fatal(err)
		}
		ended := make(chan result, 1)
		go func() { ended <- d.run(t, strings.Fields(test.line)...) }()
		pgtest.WaitForLock(t, db)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got.status != exitOK {
			t.Errorf("%s ended with %+v", test.line, got)
			continue
		}
		words := strings.Fields(test.line)
		action := strings.Replace(words[0]+"."+words[1], "retention.set", "retention.update", 1)
		d.wantAudited(t, action, test.before, test.after)
	}
}

// wantAudited compares the given fields with the newest audit log entry of an action.
func (d *cli) wantAudited(t *testing.T, action string, before, after map[string]any) {
	t.Helper()
	entry := list(t, d.document(t, "audit", "list", "--action", action), "entries")[0]
	for state, want := range map[string]map[string]any{"before": before, "after": after} {
		said, _ := entry[state].(map[string]any)
		got := map[string]any{}
		for name := range want {
			if value, there := said[name]; there {
				got[name] = value
			}
		}
		if want == nil {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s is %v (-want +got):\n%s", action, state, entry[state], diff)
		}
	}
}
