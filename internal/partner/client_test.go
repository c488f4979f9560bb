package partner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

func TestCreateClientPicksMerchants(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	single, several := h.partner(t, "Single").UID, h.partner(t, "Several").UID
	empty := h.partner(t, "Empty").UID
	lone := h.merchants(t, single, 1)
	three := h.merchants(t, several, 3)
	tests := []struct {
		name    string
		request partner.NewClient
		want    []uuid.UUID
		refused lending.Code
	}{
		{"plain takes the only one", partner.NewClient{PartnerUID: single}, lone, ""},
		{
			"plain takes the named one",
			partner.NewClient{PartnerUID: several, MerchantUIDs: three[1:2]},
			three[1:2], "",
		},
		{
			"group takes all",
			partner.NewClient{PartnerUID: several, Group: true},
			three, "",
		},
		{
			"group takes the named ones",
			partner.NewClient{PartnerUID: several, Group: true, MerchantUIDs: three[:2]},
			three[:2], "",
		},
		{"group of one", partner.NewClient{PartnerUID: single, Group: true}, lone, ""},
		{
			"one named twice counts once",
			partner.NewClient{PartnerUID: several, MerchantUIDs: []uuid.UUID{three[0], three[0]}},
			three[:1], "",
		},
		{"plain must choose", partner.NewClient{PartnerUID: several}, nil, lending.CodeValidation},
		{
			"plain with two",
			partner.NewClient{PartnerUID: several, MerchantUIDs: three[:2]},
			nil, lending.CodeValidation,
		},
		{
			"another partner's merchant",
			partner.NewClient{PartnerUID: several, MerchantUIDs: lone},
			nil, lending.CodeValidation,
		},
		{
			"unknown merchant",
			partner.NewClient{PartnerUID: single, MerchantUIDs: []uuid.UUID{uuid.New()}},
			nil, lending.CodeValidation,
		},
		{
			"no merchant yet",
			partner.NewClient{PartnerUID: empty, Group: true},
			nil, lending.CodeValidation,
		},
		{"unknown partner", partner.NewClient{PartnerUID: uuid.New()}, nil, lending.CodeNotFound},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			issued, err := tryTx(h.DB, func(tx *postgres.Tx) (partner.Issued, error) {
				return h.CreateClient(t.Context(), tx, test.request)
			})
			if test.refused != "" {
				wantRefusal(t, err, test.refused, "")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantIssued(t, h, issued, test.request.Group, test.want)
		})
	}
}

// wantIssued checks what was returned for a new client, and what is stored.
func wantIssued(
	t *testing.T, h harness, issued partner.Issued, group bool, merchants []uuid.UUID,
) {
	t.Helper()
	client, err := h.Client(t.Context(), issued.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(merchants, []uuid.UUID(client.MerchantUIDs)); diff != "" {
		t.Errorf("stored merchants:\n%s", diff)
	}
	if diff := cmp.Diff(merchants, issued.MerchantUIDs); diff != "" {
		t.Errorf("reported merchants:\n%s", diff)
	}
	if client.Group != group || issued.Group != group {
		t.Errorf("group %v and %v, want %v", client.Group, issued.Group, group)
	}
}

func TestSecretIsStoredOnlyAsHash(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issued := h.plain(t)
	rotated := h.rotate(t, issued.ClientID, time.Hour)
	var dump string
	err := h.DB.GetContext(t.Context(), &dump,
		`SELECT string_agg(c::text || encode(c.secret_hash, 'escape') ||
		        encode(c.previous_secret_hash, 'escape'), ' ') FROM clients c`)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(dump, issued.ClientID) {
		t.Fatalf("the dump holds no client: %q", dump)
	}
	for _, secret := range []string{issued.Secret, rotated.Secret} {
		if len(secret) < 40 || strings.Contains(dump, secret) ||
			strings.Contains(dump, strings.TrimPrefix(secret, "dbs_")) {
			t.Errorf("secret %q is short or can be read from the table", secret)
		}
	}
}

func TestSecretsAndIDsDiffer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner := h.partner(t, "Partner").UID
	h.merchants(t, owner, 1)
	seen := map[string]bool{}
	for range 20 {
		issued := h.client(t, partner.NewClient{PartnerUID: owner})
		if seen[issued.ClientID] || seen[issued.Secret] {
			t.Fatalf("%+v was issued before", issued.Credentials)
		}
		seen[issued.ClientID], seen[issued.Secret] = true, true
	}
}

func TestDemoCredentialsStay(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner := h.partner(t, "Partner").UID
	h.merchants(t, owner, 1)
	issued := h.client(t, partner.NewClient{PartnerUID: owner, Demo: "plain"})
	if issued.Credentials != partner.DemoCredentials("plain") {
		t.Errorf("issued %+v, want the same as DemoCredentials", issued.Credentials)
	}
	if err := h.login(partner.DemoCredentials("plain")); err != nil {
		t.Errorf("the demo credentials are refused: %v", err)
	}
	if other := partner.DemoCredentials("group"); other.ClientID == issued.ClientID ||
		other.Secret == issued.Secret {
		t.Errorf("two names share credentials: %+v", other)
	}
}

func TestRotationOverlap(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		overlap time.Duration
		after   time.Duration
		oldOK   bool
	}{
		{"at once", 24 * time.Hour, 0, true},
		{"just before its end", 24 * time.Hour, 24*time.Hour - time.Microsecond, true},
		{"at its end", 24 * time.Hour, 24 * time.Hour, false},
		{"without overlap", 0, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			issued := h.plain(t)
			rotatedAt := h.clock.now()
			rotated := h.rotate(t, issued.ClientID, test.overlap)
			if rotated.ClientID != issued.ClientID || rotated.Secret == issued.Secret {
				t.Errorf("rotated to %+v, want a new secret of the same client", rotated)
			}
			switch until := rotated.PreviousValidUntil; {
			case test.overlap == 0 && until != nil:
				t.Errorf("the old secret is said to work until %v", until)
			case test.overlap > 0 && (until == nil || !until.Equal(rotatedAt.Add(test.overlap))):
				t.Errorf("the old secret is said to work until %v", until)
			}
			h.clock.advance(test.after)
			if err := h.login(rotated.Credentials); err != nil {
				t.Errorf("the new secret: %v", err)
			}
			if err := h.login(issued.Credentials); (err == nil) != test.oldOK {
				t.Errorf("the old secret: %v, want accepted %v", err, test.oldOK)
			}
		})
	}
}

func TestSecondRotationEndsTheFirstSecret(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issued := h.plain(t)
	second := h.rotate(t, issued.ClientID, 24*time.Hour)
	third := h.rotate(t, issued.ClientID, 24*time.Hour)
	if err := h.login(issued.Credentials); lending.ErrorCode(err) != lending.CodeUnauthorized {
		t.Errorf("the first secret: %v, want UNAUTHORIZED", err)
	}
	for _, credentials := range []partner.Credentials{second.Credentials, third.Credentials} {
		if err := h.login(credentials); err != nil {
			t.Errorf("one of the last two secrets: %v", err)
		}
	}
}

func TestRevocationHoldsInEveryProcessAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := h.neighbour(t)
	issued := h.plain(t)
	rotated := h.rotate(t, issued.ClientID, time.Hour)
	for _, process := range []harness{h, other} {
		if err := process.login(rotated.Credentials); err != nil {
			t.Fatal(err)
		}
	}
	h.revoke(t, issued.ClientID)
	first, err := h.Client(t.Context(), issued.ClientID)
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range []harness{h, other} {
		for _, credentials := range []partner.Credentials{issued.Credentials, rotated.Credentials} {
			wantRefusal(t, process.login(credentials), lending.CodeUnauthorized, "")
		}
	}
	h.clock.advance(time.Hour)
	h.revoke(t, issued.ClientID)
	again, err := h.Client(t.Context(), issued.ClientID)
	if err != nil || first.RevokedAt == nil || !again.RevokedAt.Equal(*first.RevokedAt) {
		t.Errorf("revoked at %v, then at %v, %v, want the same", first.RevokedAt, again.RevokedAt, err)
	}
}

func TestRefusedChangesOfClients(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	live, revoked := h.plain(t).ClientID, h.plain(t).ClientID
	h.revoke(t, revoked)
	unknown := partner.DemoCredentials("nobody").ClientID
	rotate := func(id string, overlap time.Duration) func(*postgres.Tx) error {
		return func(tx *postgres.Tx) error {
			_, err := h.RotateClient(context.Background(), tx, id, overlap)
			return err
		}
	}
	setRate := func(id string, rate, burst int) func(*postgres.Tx) error {
		return func(tx *postgres.Tx) error {
			return h.SetRate(context.Background(), tx, id, rate, burst)
		}
	}
	revoke := func(id string) func(*postgres.Tx) error {
		return func(tx *postgres.Tx) error { return h.RevokeClient(context.Background(), tx, id) }
	}
	tests := []struct {
		name  string
		call  func(tx *postgres.Tx) error
		code  lending.Code
		field string
	}{
		{"negative overlap", rotate(live, -time.Second), lending.CodeValidation, "overlap"},
		{"overlap of a year", rotate(live, 365*24*time.Hour), lending.CodeValidation, "overlap"},
		{"rotate unknown", rotate(unknown, 0), lending.CodeNotFound, ""},
		{"rotate garbage", rotate("x\x00\xff", 0), lending.CodeNotFound, ""},
		{"rotate revoked", rotate(revoked, 0), lending.CodeInvalidState, ""},
		{"revoke unknown", revoke(unknown), lending.CodeNotFound, ""},
		{"revoke garbage", revoke("'; --\x00"), lending.CodeNotFound, ""},
		{"rate of zero", setRate(live, 0, 1), lending.CodeValidation, "rate"},
		{"rate too high", setRate(live, 100_001, 1), lending.CodeValidation, "rate"},
		{"burst of zero", setRate(live, 1, 0), lending.CodeValidation, "burst"},
		{"burst too high", setRate(live, 1, 200_001), lending.CodeValidation, "burst"},
		{"rate of unknown", setRate(unknown, 1, 1), lending.CodeNotFound, ""},
		{"rate of revoked", setRate(revoked, 1, 1), lending.CodeInvalidState, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantRefusal(t, h.DB.InTx(t.Context(), test.call), test.code, test.field)
		})
	}
	client, err := h.Client(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	if client.RatePerSecond != partner.DefaultRatePerSecond || client.Burst != partner.DefaultBurst ||
		client.RevokedAt != nil || client.PreviousValidUntil != nil {
		t.Errorf("a refused call changed the client: %+v", client)
	}
	if _, err := h.Client(t.Context(), unknown); lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("unknown client: %v, want NOT_FOUND", err)
	}
}

func TestListClientsFilters(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner := h.partner(t, "Partner").UID
	merchants := h.merchants(t, owner, 2)
	kept := h.client(t, partner.NewClient{PartnerUID: owner, Group: true})
	gone := h.client(t, partner.NewClient{PartnerUID: owner, MerchantUIDs: merchants[1:]})
	foreign := h.plain(t)
	h.revoke(t, gone.ClientID)
	h.setRate(t, kept.ClientID, 7, 9)
	tests := []struct {
		name   string
		filter partner.ClientFilter
		want   []string
	}{
		{"all", partner.ClientFilter{}, []string{kept.ClientID, gone.ClientID, foreign.ClientID}},
		{
			"of a partner",
			partner.ClientFilter{PartnerUID: owner},
			[]string{kept.ClientID, gone.ClientID},
		},
		{
			"not revoked",
			partner.ClientFilter{PartnerUID: owner, WithoutRevoked: true},
			[]string{kept.ClientID},
		},
		{"of nobody", partner.ClientFilter{PartnerUID: uuid.New()}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rows, _, err := h.ListClients(t.Context(), test.filter, postgres.Paging{Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			sameSet(t, rows, test.want, func(c partner.Client) string { return c.ID })
			for _, row := range rows {
				if row.ID == kept.ClientID && (row.RatePerSecond != 7 || row.Burst != 9 ||
					!cmp.Equal([]uuid.UUID(row.MerchantUIDs), merchants)) {
					t.Errorf("client %+v, want rate 7, burst 9 and merchants %v", row, merchants)
				}
			}
		})
	}
}
