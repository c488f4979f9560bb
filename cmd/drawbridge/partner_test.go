package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// newPartner is a partner with merchants, made by commands.
func (d *cli) newPartner(t *testing.T, merchants int) (partnerUID string, merchantUIDs []string) {
	t.Helper()
	partnerUID = d.document(t, "partner", "create", "--name", "Acme")["partner_uid"].(string)
	for range merchants {
		created := d.document(t, "merchant", "create", "--partner", partnerUID, "--name", "Shop")
		merchantUIDs = append(merchantUIDs, created["merchant_uid"].(string))
	}
	return partnerUID, merchantUIDs
}

// accepts reports whether the API would accept the credentials.
func (d *cli) accepts(t *testing.T, id, clientSecret any) bool {
	t.Helper()
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	service := partner.Service{DB: db}
	_, err = service.Authenticate(t.Context(),
		partner.Presented{ClientID: id.(string), Secret: clientSecret.(string)})
	return err == nil
}

func TestPartnerAndMerchantCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	created := d.document(t, "partner", "create", "--name", "Jürgen & Söhne <GmbH>")
	wantKeys(t, created, "partner_uid", "name", "contact")
	if created["name"] != "Jürgen & Söhne <GmbH>" || created["contact"] != nil {
		t.Errorf("created %v", created)
	}
	owner := created["partner_uid"].(string)
	merchant := d.document(t, "merchant", "create", "--partner", owner, "--name", "Shop")
	wantKeys(t, merchant, "merchant_uid", "partner_uid", "name")
	other, _ := d.newPartner(t, 2)

	partners := d.document(t, "partner", "list")
	wantKeys(t, partners, "partners", "next_cursor")
	if rows := list(t, partners, "partners"); len(rows) != 2 || rows[1]["partner_uid"] != owner {
		t.Errorf("partners %v, want two, the first one last", rows)
	}
	updated := d.document(t, "partner", "update", owner, "--contact", "it@soehne.example")
	if updated["contact"] != "it@soehne.example" || updated["name"] != created["name"] {
		t.Errorf("with a contact: %v", updated)
	}
	removed := d.document(t, "partner", "update", owner, "--contact", "", "--name", "Söhne")
	if removed["contact"] != nil || removed["name"] != "Söhne" {
		t.Errorf("without: %v", removed)
	}
	for _, wrong := range [][]string{
		{owner}, {owner, "--contact", "nobody"}, {owner, "--name", ""}, {"x", "--name", "y"},
	} {
		if got := d.run(t, append([]string{"partner", "update"}, wrong...)...); got.status != exitUsage {
			t.Errorf("%v ended with %d: %s", wrong, got.status, got.stderr)
		}
	}
	rows := list(t, d.document(t, "merchant", "list", "--partner", owner), "merchants")
	if diff := cmp.Diff([]map[string]any{merchant}, rows); diff != "" {
		t.Errorf("merchants of the first partner:\n%s", diff)
	}
	page := d.document(t, "merchant", "list", "--limit", "1")
	rest := d.document(t, "merchant", "list", "--cursor", page["next_cursor"].(string))
	if len(list(t, page, "merchants")) != 1 || len(list(t, rest, "merchants")) != 2 ||
		rest["next_cursor"] != nil {
		t.Errorf("pages %v and %v, want one merchant and the other two", page, rest)
	}
	for _, args := range [][]string{{"partner", "list"}, {"merchant", "list"}} {
		if text := d.text(t, args...); !strings.Contains(text, other) {
			t.Errorf("%q prints %q, without %s", args, text, other)
		}
	}
}

func TestClientCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, merchants := d.newPartner(t, 3)
	group := d.document(t, "client", "create", "--partner", owner, "--group")
	wantKeys(t, group, "client_id", "client_secret", "group", "merchant_uids")
	if uids := group["merchant_uids"].([]any); group["group"] != true || len(uids) != 3 {
		t.Errorf("group client %v, want all three merchants", group)
	}
	plain := d.document(t, "client", "create", "--partner", owner, "--merchant", merchants[1])
	if diff := cmp.Diff([]any{merchants[1]}, plain["merchant_uids"]); diff != "" {
		t.Errorf("merchants of the plain client:\n%s", diff)
	}
	if !d.accepts(t, plain["client_id"], plain["client_secret"]) {
		t.Fatal("the printed credentials are refused")
	}
	id := plain["client_id"].(string)

	before := time.Now()
	rotated := d.document(t, "client", "rotate", id, "--overlap", "2h")
	wantKeys(t, rotated, "client_id", "client_secret", "previous_valid_until")
	until, err := time.Parse(time.RFC3339Nano, rotated["previous_valid_until"].(string))
	if err != nil || until.Before(before.Add(2*time.Hour-time.Second)) ||
		until.After(time.Now().Add(2*time.Hour)) {
		t.Errorf("the old secret is valid until %v, %v, want two hours", until, err)
	}
	final := d.document(t, "client", "rotate", "--overlap", "0s", id)
	if final["previous_valid_until"] != nil {
		t.Errorf("without overlap the old secret is valid until %v", final["previous_valid_until"])
	}
	for name, try := range map[string]struct {
		secret any
		want   bool
	}{
		"first":  {plain["client_secret"], false},
		"second": {rotated["client_secret"], false},
		"third":  {final["client_secret"], true},
	} {
		if got := d.accepts(t, id, try.secret); got != try.want {
			t.Errorf("the %s secret is accepted: %v, want %v", name, got, try.want)
		}
	}

	limited := d.document(t, "client", "rate", id, "--rate", "7", "--burst", "9")
	if limited["rate_per_second"] != 7.0 || limited["burst"] != 9.0 {
		t.Errorf("after setting the rate: %v", limited)
	}
	revoked := d.document(t, "client", "revoke", id)
	if revoked["revoked_at"] == nil || d.accepts(t, id, final["client_secret"]) {
		t.Errorf("after revoking: %v", revoked)
	}
	active := list(t, d.document(t, "client", "list", "--active"), "clients")
	if len(active) != 1 || active[0]["client_id"] != group["client_id"] {
		t.Errorf("active clients %v, want the group's alone", active)
	}
	if all := d.text(t, "client", "list", "--partner", owner); !strings.Contains(all, "revoked") ||
		strings.Contains(all, final["client_secret"].(string)) {
		t.Errorf("the list %q hides the revoked client or shows a secret", all)
	}
}

// TestLenderClientCommands issues credentials to one of the lender's systems, and refuses flags
// that describe neither a partner's client nor a lender's.
func TestLenderClientCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, _ := d.newPartner(t, 1)
	made := d.document(t, "client", "create", "--lender", "--name", "payments", "--scope", "funding",
		"--scope", "read", "--from", "203.0.113.0/24")
	id := made["client_id"].(string)
	listed := list(t, d.document(t, "client", "list"), "clients")
	if len(listed) != 1 || listed[0]["client_id"] != id || listed[0]["name"] != "payments" ||
		listed[0]["lender"] != true || listed[0]["partner_uid"] != nil {
		t.Fatalf("the list has %v", listed)
	}
	if diff := cmp.Diff([]any{"funding", "read"}, listed[0]["scopes"]); diff != "" {
		t.Errorf("scopes: %s", diff)
	}
	if text := d.text(t, "client", "list"); !strings.Contains(text, "payments") {
		t.Errorf("the list says %q", text)
	}
	for _, wrong := range [][]string{
		{"--lender", "--scope", "read"},
		{"--lender", "--name", "payments"},
		{"--lender", "--name", "payments", "--scope", "pay"},
		{"--lender", "--name", "payments", "--scope", "read", "--partner", owner},
		{"--lender", "--name", "payments", "--scope", "read", "--from", "here"},
		{"--partner", owner, "--scope", "read"},
		{},
	} {
		got := d.run(t, append([]string{"client", "create"}, wrong...)...)
		if got.status != exitUsage || got.stderr == "" {
			t.Errorf("%v ended with %d: %s", wrong, got.status, got.stderr)
		}
	}
	d.document(t, "client", "rotate", id)
	revoked := d.document(t, "client", "revoke", id)
	if revoked["revoked_at"] == nil || revoked["lender"] != true {
		t.Errorf("after revoking: %v", revoked)
	}
	log := d.document(t, "audit", "list", "--action", "client.", "--limit", "2")
	entries := list(t, log, "entries")
	if len(entries) != 2 || entries[0]["action"] != "client.revoke" || entries[0]["subject"] != id ||
		entries[1]["action"] != "client.rotate" {
		t.Fatalf("the audit log has %v", entries)
	}
	page := d.document(t, "audit", "list", "--limit", "1")
	next := d.document(t, "audit", "list", "--limit", "1", "--cursor", page["next_cursor"].(string))
	if list(t, next, "entries")[0]["action"] != "client.rotate" {
		t.Errorf("the second page has %v", next)
	}
	if text := d.text(t, "audit", "list", "--subject", id); !strings.Contains(text, "client.create") {
		t.Errorf("the audit log says %q", text)
	}
	if got := d.run(t, "audit", "list", "--cursor", "x"); got.status != exitUsage {
		t.Errorf("a wrong cursor ended with %d", got.status)
	}
}

// A second rotation within the overlap of the first ends it, and the commands say so; they do not
// claim that a secret which has stopped still works.
func TestRotationsTellWhatStopped(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, _ := d.newPartner(t, 1)
	client, _ := d.document(t, "client", "create", "--partner", owner)["client_id"].(string)
	subscribed := d.document(t, "subscription", "create", "--partner", owner, "--url",
		"https://hook.example/", "--event", "all", "--secret", "secret-number-zero")
	uid, _ := subscribed["subscription_uid"].(string)
	rotate := []string{"client", "rotate", client}
	update := []string{"subscription", "update", uid, "--secret"}
	const (
		cutShort   = "the secret before the old one stopped working at once; it would have worked until"
		works      = "the old secret works until"
		signs      = "the old secret signs alongside the new one until"
		oldStopped = "the old secret stopped working at once"
	)
	for _, step := range []struct {
		args []string
		said []string
	}{
		{rotate, []string{works}},
		{rotate, []string{works, cutShort}},
		{append(slices.Clone(rotate), "--overlap", "0s"), []string{oldStopped, cutShort}},
		{rotate, []string{works}},
		{append(slices.Clone(update), "secret-number-one1"), []string{signs}},
		{append(slices.Clone(update), "secret-number-two2", "--json"), []string{signs, cutShort}},
		{[]string{"subscription", "update", uid, "--rate", "5"}, nil},
		{
			[]string{"subscription", "restore", uid, "--version", "1", "--secret", "secret-number-three"},
			[]string{signs, cutShort},
		},
		{
			append(slices.Clone(update), "secret-number-four", "--overlap", "0s"),
			[]string{oldStopped, cutShort},
		},
		{append(slices.Clone(update), "token-number-five5", "--auth", "bearer"), []string{oldStopped}},
	} {
		got := d.run(t, step.args...)
		if got.status != exitOK {
			t.Fatalf("%v ended with %d: %s", step.args, got.status, got.stderr)
		}
		for _, words := range []string{works, signs, oldStopped, cutShort} {
			said := strings.Contains(got.stdout+got.stderr, words)
			if want := slices.Contains(step.said, words); said != want {
				t.Errorf("%v says %q: %v, want %v: %s%s", step.args, words, said, want,
					got.stdout, got.stderr)
			}
		}
	}
}

func TestSecretsAreShownOnceAndNotAudited(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, _ := d.newPartner(t, 1)
	created := d.text(t, "client", "create", "--partner", owner)
	id := strings.Fields(created)[1]
	rotated := d.text(t, "client", "rotate", id)
	for _, text := range []string{created, rotated} {
		if !strings.Contains(text, "shown only now") || !strings.Contains(text, "dbs_") {
			t.Errorf("%q does not show the secret", text)
		}
	}
	d.run(t, "client", "rate", id, "--rate", "5", "--burst", "5")
	d.run(t, "client", "revoke", id)
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var entries []string
	err = db.Select(&entries, `
		SELECT action || ' ' || subject || ' ' || coalesce(after::text, '')
		  FROM audit_log ORDER BY entry_id`)
	if err != nil {
		t.Fatal(err)
	}
	log := strings.Join(entries, "\n")
	for _, want := range []string{
		"partner.create " + owner, "merchant.create ", "client.create " + id,
		"client.rotate " + id, "client.rate " + id, "client.revoke " + id,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "dbs_") {
		t.Errorf("the audit log holds a secret:\n%s", log)
	}
}

func TestProductCommands(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	flags := []string{
		"product", "create", "--code", "ROOF-60", "--name", "Roof", "--term", "60",
		"--rate", "6.5", "--fee", "3.75", "--schedule", "33.33,33.33,33.34",
		"--min", "500", "--max", "25000.5",
	}
	created := d.document(t, flags...)
	uid := created["product_uid"]
	want := map[string]any{
		"product_uid": uid, "code": "ROOF-60", "name": "Roof", "term": "60",
		"interest_rate": "6.5", "merchant_fee_percentage": "3.75",
		"schedule":   []any{"33.33", "33.33", "33.34"},
		"min_amount": "500.00", "max_amount": "25000.50", "active": true,
		"overdue_hours": float64(16),
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("created product:\n%s", diff)
	}
	rows := list(t, d.document(t, "product", "list"), "products")
	if diff := cmp.Diff([]map[string]any{want}, rows); diff != "" {
		t.Errorf("listed products:\n%s", diff)
	}
	if text := d.text(t, "product", "list"); !strings.Contains(text, "ROOF-60") {
		t.Errorf("the list %q lacks the product", text)
	}
	again := d.run(t, flags...)
	if again.status != exitFailed || !strings.Contains(again.stderr, "--code ROOF-60 is taken") {
		t.Errorf("the same code again: %+v", again)
	}
}

func TestEmptyListsAreArrays(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	for _, plural := range []string{"partners", "merchants", "clients", "products"} {
		document := d.document(t, strings.TrimSuffix(plural, "s"), "list")
		if rows, ok := document[plural].([]any); !ok || len(rows) != 0 {
			t.Errorf("%v, want an empty array of %s", document, plural)
		}
	}
}

// productWith is a valid command line with one flag replaced.
func productWith(flag, value string) []string {
	values := map[string]string{
		"code": "A", "name": "A", "term": "12", "rate": "1", "fee": "1",
		"schedule": "100", "min": "1", "max": "2", flag: value,
	}
	args := []string{"product", "create"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		args = append(args, "--"+name+"="+values[name])
	}
	return args
}

func TestWrongPartnerCommandLines(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, _ := d.newPartner(t, 2)
	const nobody = "018f3b9e-7c1a-7d60-9c55-3e1f0a2b4c6d"
	tests := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"no name", []string{"partner", "create"}, exitUsage, "--name"},
		{"empty name", []string{"partner", "create", "--name", " "}, exitUsage, "--name is required"},
		{
			"two-line name",
			[]string{"partner", "create", "--name", "a\nb"},
			exitUsage, "--name must be one line",
		},
		{
			"limit",
			[]string{"partner", "list", "--limit", "501"},
			exitUsage, "--limit must be from 1 to 500",
		},
		{"cursor", []string{"client", "list", "--cursor", "x"}, exitUsage, "cursor"},
		{
			"malformed partner",
			[]string{"merchant", "create", "--partner", "7", "--name", "a"},
			exitUsage, `--partner is "7"`,
		},
		{
			"unknown partner",
			[]string{"merchant", "create", "--partner", nobody, "--name", "a"},
			exitFailed, "there is no partner " + nobody,
		},
		{
			"malformed merchant",
			[]string{"client", "create", "--partner", owner, "--merchant", "x"},
			exitUsage, `--merchant is "x"`,
		},
		{
			"foreign merchant",
			[]string{"client", "create", "--partner", owner, "--merchant", nobody},
			exitUsage, "--merchant " + nobody + " is not a merchant of partner",
		},
		{
			"plain of two",
			[]string{"client", "create", "--partner", owner},
			exitUsage, "--merchant must name exactly one of 2 merchants",
		},
		{"unknown client", []string{"client", "rotate", "dbc_x"}, exitFailed, `no client "dbc_x"`},
		{
			"overlap",
			[]string{"client", "rotate", "dbc_x", "--overlap", "9000h"},
			exitUsage, "--overlap must be from 0s to 720h",
		},
		{
			"overlap without unit",
			[]string{"client", "rotate", "dbc_x", "--overlap", "24"},
			exitUsage, "--overlap",
		},
		{
			"rate",
			[]string{"client", "rate", "dbc_x", "--rate", "0", "--burst", "0"},
			exitUsage, "--rate must be from 1 to 100000 requests per second; --burst must be from 1",
		},
		{
			"schedule", productWith("schedule", "40,40,10"),
			exitUsage, "--schedule must add up to exactly 100",
		},
		{"negative fee", productWith("fee", "-1"), exitUsage, "--fee must be a percentage"},
		{
			"minimum above maximum", productWith("min", "3"),
			exitUsage, "--max 2.00 must be at least --min 3.00",
		},
		{
			"code", productWith("code", "a b"),
			exitUsage, `--code must be 1 to 60 letters, digits, "-", "_"`,
		},
		{"term", productWith("term", "a year"), exitUsage, "--term must be a number of months"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := d.run(t, test.args...)
			if got.status != test.status || got.stdout != "" ||
				!strings.Contains(got.stderr, test.says) ||
				strings.Count(strings.TrimRight(got.stderr, "\n"), "\n") > 0 {
				t.Errorf("got %+v, want status %d and one line that says %q",
					got, test.status, test.says)
			}
		})
	}
	if rows := list(t, d.document(t, "partner", "list"), "partners"); len(rows) != 1 {
		t.Errorf("a refused command left something behind: %v", rows)
	}
}

// A command waits for a lock that another transaction holds, but not for ever.
func TestCommandGivesUpWaiting(t *testing.T) {
	t.Parallel()
	d := newCLI(t)
	owner, _ := d.newPartner(t, 0)
	db, err := postgres.Open(t.Context(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.InTx(t.Context(), func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(t.Context(),
			`SELECT FROM partners WHERE partner_uid = $1 FOR UPDATE`, owner); err != nil {
			return err
		}
		d.databaseTimeout = time.Second
		got := d.run(t, "partner", "update", owner, "--name", "Acme II")
		want := "the database did not answer in time: given up after 1s"
		if got.status != exitFailed || !strings.Contains(got.stderr, want) {
			t.Errorf("ended with %d and %q, want %d and %q",
				got.status, got.stderr, exitFailed, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.databaseTimeout = 0
	if renamed := d.document(t, "partner", "update", owner, "--name", "Acme III"); renamed["name"] !=
		"Acme III" {
		t.Errorf("afterwards the partner is %v", renamed)
	}
}
