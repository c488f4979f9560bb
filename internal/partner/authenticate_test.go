package partner_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	plain := h.plain(t)
	groupPartner := h.partner(t, "Group partner").UID
	three := h.merchants(t, groupPartner, 3)
	group := h.client(t, partner.NewClient{
		PartnerUID: groupPartner, Group: true, MerchantUIDs: three[:2],
	})
	own := plain.MerchantUIDs[0].String()
	tests := []struct {
		name         string
		as           partner.Issued
		merchant     string
		want         uuid.UUID
		refused      lending.Code
		field, exact string
	}{
		{name: "plain", as: plain, want: plain.MerchantUIDs[0]},
		{name: "plain names its own", as: plain, merchant: own, want: plain.MerchantUIDs[0]},
		{name: "upper case", as: plain, merchant: strings.ToUpper(own), want: plain.MerchantUIDs[0]},
		{
			name: "plain names another's", as: plain, merchant: three[0].String(),
			refused: lending.CodeForbidden,
		},
		{
			name: "plain names nobody", as: plain, merchant: uuid.NewString(),
			refused: lending.CodeForbidden,
		},
		{
			name: "plain, malformed", as: plain, merchant: "shop-7",
			refused: lending.CodeValidation, field: "x-service-merchant-uid",
		},
		{name: "group names its first", as: group, merchant: three[0].String(), want: three[0]},
		{name: "group names its second", as: group, merchant: three[1].String(), want: three[1]},
		{
			name: "group names its partner's other", as: group, merchant: three[2].String(),
			refused: lending.CodeForbidden,
		},
		{
			name: "group names another partner's", as: group, merchant: own,
			refused: lending.CodeForbidden,
		},
		{
			name: "group without", as: group, refused: lending.CodeValidation,
			field: "x-service-merchant-uid", exact: `"x-service-merchant-uid" is required`,
		},
		{
			name: "braces", as: group, merchant: "{" + three[0].String() + "}",
			refused: lending.CodeValidation, field: "x-service-merchant-uid",
		},
		{
			name: "no dashes", as: group, merchant: strings.ReplaceAll(three[0].String(), "-", ""),
			refused: lending.CodeValidation, field: "x-service-merchant-uid",
		},
		{
			name: "not UTF-8", as: group, merchant: "\xff\x00",
			refused: lending.CodeValidation, field: "x-service-merchant-uid",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			caller, err := h.Authenticate(t.Context(), presented(test.as.Credentials, test.merchant))
			if test.refused != "" {
				wantRefusal(t, err, test.refused, test.field)
				if test.exact != "" && err.Error() != test.exact {
					t.Errorf("message %q, want %q", err, test.exact)
				}
				return
			}
			want := partner.Caller{
				ClientID: test.as.ClientID, PartnerUID: h.ownerOf(t, test.as.ClientID),
				MerchantUID: test.want, MerchantUIDs: postgres.UIDs{test.want},
				RatePerSecond: 50, Burst: 100,
			}
			if diff := cmp.Diff(want, caller); err != nil || diff != "" {
				t.Errorf("caller: %v %s", err, diff)
			}
		})
	}
}

// A group client that names no merchant acts for all of its own merchants and no other of its
// partner's, if the operation allows that; one that names a merchant acts for that one alone.
func TestAuthenticateAll(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	plain := h.plain(t)
	owner := h.partner(t, "Group partner").UID
	three := h.merchants(t, owner, 3)
	group := h.client(t, partner.NewClient{
		PartnerUID: owner, Group: true, MerchantUIDs: three[:2],
	})
	for _, test := range []struct {
		name, merchant string
		as             partner.Issued
		want           []uuid.UUID
	}{
		{name: "group", as: group, want: three[:2]},
		{name: "group names one", as: group, merchant: three[1].String(), want: three[1:2]},
		{name: "group names another", as: group, merchant: three[2].String()},
		{name: "plain", as: plain, want: plain.MerchantUIDs},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			caller, err := h.AuthenticateAll(t.Context(), presented(test.as.Credentials, test.merchant))
			if test.want == nil {
				wantRefusal(t, err, lending.CodeForbidden, "")
				return
			}
			if diff := cmp.Diff(test.want, []uuid.UUID(caller.MerchantUIDs)); err != nil || diff != "" {
				t.Errorf("merchants: %v %s", err, diff)
			}
			if (caller.MerchantUID == uuid.Nil) != (len(test.want) > 1) {
				t.Errorf("the merchant of the call is %s", caller.MerchantUID)
			}
		})
	}
}

func TestUnauthorizedAnswersAreAlike(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	plain, revoked := h.plain(t), h.plain(t)
	group := h.client(t, partner.NewClient{
		PartnerUID: h.ownerOf(t, plain.ClientID), Group: true,
	})
	h.revoke(t, revoked.ClientID)
	stranger := partner.DemoCredentials("stranger")
	tests := []struct {
		name, id, secret, merchant string
	}{
		{name: "nothing"},
		{name: "no secret", id: plain.ClientID},
		{name: "no id", secret: plain.Secret},
		{name: "unknown id", id: stranger.ClientID, secret: stranger.Secret},
		{name: "unknown id, someone's secret", id: stranger.ClientID, secret: plain.Secret},
		{name: "another's secret", id: plain.ClientID, secret: revoked.Secret},
		{name: "cut secret", id: plain.ClientID, secret: plain.Secret[:len(plain.Secret)-1]},
		{name: "secret and more", id: plain.ClientID, secret: plain.Secret + "A"},
		{name: "secret in capitals", id: plain.ClientID, secret: strings.ToUpper(plain.Secret)},
		{name: "id in capitals", id: strings.ToUpper(plain.ClientID), secret: plain.Secret},
		{name: "id with space", id: plain.ClientID + " ", secret: plain.Secret},
		{name: "revoked", id: revoked.ClientID, secret: revoked.Secret},
		{name: "NUL", id: "dbc_\x00", secret: "\x00"},
		{name: "not UTF-8", id: "\xc3\x28", secret: "\xff"},
		{name: "SQL", id: "' OR '1'='1", secret: "' OR '1'='1"},
		{name: "long", id: strings.Repeat("x", 1<<16), secret: strings.Repeat("y", 1<<16)},
		// Errors about the merchant are shown only to callers who proved who they are.
		{name: "wrong secret, no merchant", id: group.ClientID, secret: plain.Secret},
		{name: "wrong secret, malformed merchant", id: group.ClientID, secret: "x", merchant: "x"},
		{
			name: "wrong secret, another's merchant", id: plain.ClientID, secret: "x",
			merchant: uuid.NewString(),
		},
	}
	want := h.login(partner.Credentials{})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			caller, err := h.Authenticate(t.Context(), partner.Presented{
				ClientID: test.id, Secret: test.secret, Merchant: test.merchant,
			})
			wantRefusal(t, err, lending.CodeUnauthorized, "")
			if err.Error() != want.Error() {
				t.Errorf("message %q tells more than %q", err, want)
			}
			if !cmp.Equal(caller, partner.Caller{}) {
				t.Errorf("a refused request has a caller: %+v", caller)
			}
		})
	}
}

func (h harness) ownerOf(t *testing.T, clientID string) uuid.UUID {
	t.Helper()
	client, err := h.Client(t.Context(), clientID)
	if err != nil {
		t.Fatal(err)
	}
	return client.PartnerUID
}

func TestRateAppliesFromTheNextRequestInEveryProcess(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := h.neighbour(t)
	issued := h.plain(t)
	h.setRate(t, issued.ClientID, 5, 8)
	caller, err := other.Authenticate(t.Context(), presented(issued.Credentials, ""))
	if err != nil || caller.RatePerSecond != 5 || caller.Burst != 8 {
		t.Errorf("caller %+v, %v, want rate 5 and burst 8", caller, err)
	}
}

func TestLastUsedIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issued := h.plain(t)
	start := h.clock.now()
	steps := []struct {
		at   time.Duration // when the client is used
		want time.Duration // its last_used_at afterwards
	}{
		{0, 0},
		{30 * time.Second, 0},
		{59 * time.Second, 0},
		{60 * time.Second, 60 * time.Second},
		{90 * time.Second, 60 * time.Second},
		{10 * time.Minute, 10 * time.Minute},
	}
	if client, err := h.Client(t.Context(), issued.ClientID); err != nil || client.LastUsedAt != nil {
		t.Fatalf("a new client was used at %v, %v", client.LastUsedAt, err)
	}
	updates := countStatements(t, h.DB, "UPDATE", "clients")
	for _, step := range steps {
		h.clock.micros.Store(start.Add(step.at).UnixMicro())
		if err := h.login(issued.Credentials); err != nil {
			t.Fatal(err)
		}
		client, err := h.Client(t.Context(), issued.ClientID)
		if err != nil {
			t.Fatal(err)
		}
		if client.LastUsedAt == nil || !client.LastUsedAt.Equal(start.Add(step.want)) {
			t.Errorf("used at %v, noted %v, want %v", step.at, client.LastUsedAt, step.want)
		}
	}
	h.clock.advance(time.Hour)
	wantRefusal(t, h.login(partner.Credentials{ClientID: issued.ClientID, Secret: "wrong"}),
		lending.CodeUnauthorized, "")
	client, err := h.Client(t.Context(), issued.ClientID)
	if err != nil || !client.LastUsedAt.Equal(start.Add(10*time.Minute)) {
		t.Errorf("a refused request counts as use: %v, %v", client.LastUsedAt, err)
	}
	if got := updates(); got != 3 {
		t.Errorf("%d statements noted 6 uses, want 3", got)
	}
}

// TestRevocationUnderLoad revokes a client, and replaces the secret of another, while two
// processes are busy: neither accepts a request that comes after the change has returned.
func TestRevocationUnderLoad(t *testing.T) {
	t.Parallel()
	here := newHarness(t)
	there := here.neighbour(t)
	for name, end := range map[string]func(id string){
		"revoked": func(id string) { here.revoke(t, id) },
		"rotated": func(id string) { here.rotate(t, id, 0) },
	} {
		issued := here.plain(t)
		const each = 200
		var ended atomic.Bool
		var busy, callers sync.WaitGroup
		for _, process := range []harness{here, there, here, there} {
			busy.Add(1)
			callers.Go(func() {
				for calls, refused := 0, 0; refused < each; calls++ {
					if calls == each {
						busy.Done()
					}
					late := ended.Load()
					switch err := process.login(issued.Credentials); {
					case late && err == nil:
						t.Errorf("a call was let in after the client was %s", name)
						return
					case late:
						refused++
					case err != nil && calls < each:
						t.Errorf("a call was refused before the client was %s: %v", name, err)
						busy.Done()
						return
					}
				}
			})
		}
		busy.Wait()
		end(issued.ClientID)
		ended.Store(true)
		callers.Wait()
	}
}

// TestBusyClientsSpareQueries counts the queries of a thousand requests in a row.
func TestBusyClientsSpareQueries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.DB.SetMaxOpenConns(1)
	issued := h.plain(t)
	began := time.Now()
	for range 1000 {
		if err := h.login(issued.Credentials); err != nil {
			t.Fatal(err)
		}
	}
	var asked float64
	err := h.DB.GetContext(t.Context(), &asked, `
		SELECT sum(generic_plans + custom_plans)
		  FROM pg_prepared_statements
		 WHERE statement LIKE '%FROM clients c%' AND $1`, true)
	if err != nil {
		t.Fatal(err)
	}
	if most := 2 + time.Since(began).Seconds()*4; asked < 1 || asked > most {
		t.Errorf("%.0f queries for 1,000 calls, want one, and four a second: %.0f", asked, most)
	}
}

func TestNotingUseNeverWaits(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issued := h.plain(t)
	pgtest.Begin(t, h.DB, `UPDATE clients SET rate_per_second = 3`)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			// A request that queued behind the lock would wait for this test to end.
			if err := h.login(issued.Credentials); err != nil {
				t.Errorf("authenticating beside a locked row: %v", err)
			}
		})
	}
	group.Wait()
}
