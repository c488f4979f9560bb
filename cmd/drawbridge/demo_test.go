package main

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"drawbridge/internal/app"
	"drawbridge/internal/demo"
	"drawbridge/internal/partner"
)

// TestDemoPrintsSchedules: the quick start tells the reader to choose a product by its schedule.
func TestDemoPrintsSchedules(t *testing.T) {
	t.Parallel()
	printed := newCLI(t).text(t, "demo")
	for _, schedule := range []string{"40,40,20", "50,50", "100", "33.33,33.33,33.34"} {
		found := false
		for line := range strings.Lines(printed) {
			words := strings.Fields(line)
			found = found || len(words) > 3 && words[0] == "product" && words[3] == schedule
		}
		if !found {
			t.Errorf("no product with the schedule %s in:\n%s", schedule, printed)
		}
	}
}

// TestDemoLoadsBesideOthers: processes that start together on a new database load the data once.
func TestDemoLoadsBesideOthers(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	var results [3]result
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() { results[i] = d.run(t, "demo", "--json") })
	}
	running.Wait()
	for _, got := range results {
		if got.status != exitOK || got.stdout != results[0].stdout {
			t.Errorf("ended with %d: %s\nprinted %s", got.status, got.stderr, got.stdout)
		}
	}
}

// TestDemoTellsWhatLapsed: the data stays the same, so the command has to say which published
// credentials do not work any more.
func TestDemoTellsWhatLapsed(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	plain := partner.DemoCredentials(partner.DemoPlain)
	group := partner.DemoCredentials(partner.DemoGroup)
	published := []string{
		"operator@drawbridge.example", "support@drawbridge.example", "admin@drawbridge.example",
		plain.ClientID, group.ClientID,
	}
	lapsed := func(loaded result) (named []string) {
		for line := range strings.Lines(loaded.stderr) {
			if strings.Contains(line, "does not work any more") {
				for _, name := range published {
					if strings.Contains(line, " "+name+":") {
						named = append(named, name)
					}
				}
			}
		}
		return named
	}
	d.text(t, "demo")
	before := d.run(t, "demo", "--json")
	if named := lapsed(before); before.status != exitOK || len(named) > 0 {
		t.Fatalf("ended with %d, and these lapsed: %q", before.status, named)
	}
	d.text(t, "user", "disable", published[1])
	changed := d.runWith(t, "other words entirely\n", "user", "password", published[0])
	if changed.status != exitOK {
		t.Fatal(changed.stderr)
	}
	d.text(t, "client", "rotate", plain.ClientID)
	if named := lapsed(d.run(t, "demo")); !slices.Equal(named, published[:2]) {
		t.Errorf("during the overlap of a secret these lapsed: %q", named)
	}
	d.text(t, "client", "rotate", plain.ClientID, "--overlap", "0s")
	d.text(t, "client", "revoke", group.ClientID)
	after := d.run(t, "demo", "--json")
	want := []string{published[0], published[1], plain.ClientID, group.ClientID}
	if named := lapsed(after); !slices.Equal(named, want) {
		t.Errorf("these lapsed: %q, want %q", named, want)
	}
	if after.stdout != before.stdout {
		t.Errorf("the data became %s", after.stdout)
	}
}

// TestDemoLeavesCredentialsWhereTheyAre: a secret header that somebody has set does not keep the
// service from starting at another address.
func TestDemoLeavesCredentialsWhereTheyAre(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	start := func(origin string) (note string) {
		t.Helper()
		env := environment{
			ctx: t.Context(), getenv: func(name string) string { return d.variables[name] },
			stderr: new(lockedBuffer),
		}
		err := env.withServices(func(s *app.Services) error {
			s.Settings.PublicURL = origin
			data, err := demo.Load(env.ctx, s)
			if err != nil {
				return err
			}
			note, err = demo.Subscribe(env.ctx, s, data)
			return err
		})
		if err != nil {
			t.Fatalf("starting at %s: %v", origin, err)
		}
		return note
	}
	subscribed := func() map[string]any {
		t.Helper()
		all := list(t, d.document(t, "subscription", "list"), "subscriptions")
		if len(all) != 1 {
			t.Fatalf("%d subscriptions", len(all))
		}
		return all[0]
	}
	for _, origin := range []string{"http://127.0.0.1:7001", "http://127.0.0.1:7002"} {
		if note := start(origin); note != "" {
			t.Errorf("started at %s: %s", origin, note)
		}
		if url, _ := subscribed()["url"].(string); !strings.HasPrefix(url, origin+"/") {
			t.Fatalf("started at %s, the subscription leads to %s", origin, url)
		}
	}
	before := subscribed()
	uid := before["subscription_uid"].(string)
	d.text(t, "subscription", "update", uid, "--secret-header", "x-api-key: correct horse battery")
	if note := start("http://127.0.0.1:7003"); !strings.Contains(note, uid) ||
		!strings.Contains(note, "x-api-key") {
		t.Errorf("the start says %q", note)
	}
	if now := subscribed()["url"]; now != before["url"] {
		t.Errorf("the secret moved along to %s", now)
	}
}
