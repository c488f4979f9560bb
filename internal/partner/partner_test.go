package partner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

func TestCreatedPartnerAndMerchantReadBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	created := h.partner(t, "  Jürgen & Söhne <GmbH> ")
	if created.Name != "Jürgen & Söhne <GmbH>" {
		t.Errorf("name %q, want it without the space around it", created.Name)
	}
	got, err := h.Partner(t.Context(), created.UID)
	if err != nil || !cmp.Equal(created, got, cmp.Comparer(time.Time.Equal)) {
		t.Errorf("got %+v, %v, want %+v", got, err, created)
	}
	uid := h.merchants(t, created.UID, 1)[0]
	merchant, err := h.Merchant(t.Context(), uid)
	if err != nil || merchant.PartnerUID != created.UID || merchant.Name != "A merchant" {
		t.Errorf("got %+v, %v, want a merchant of %s", merchant, err, created.UID)
	}
}

func TestRefusedPartnersAndMerchants(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	known := h.partner(t, "Known").UID
	tests := []struct {
		name    string
		partner uuid.UUID // of the merchant to create, nil to create a partner
		text    string
		code    lending.Code
		field   string
	}{
		{"partner without a name", uuid.Nil, " ", lending.CodeValidation, "name"},
		{"partner with a long name", uuid.Nil, strings.Repeat("ä", 201), lending.CodeValidation, "name"},
		{"partner with NUL", uuid.Nil, "a\x00", lending.CodeValidation, "name"},
		{"partner in Latin-1", uuid.Nil, "caf\xe9", lending.CodeValidation, "name"},
		{"merchant without a name", known, "", lending.CodeValidation, "name"},
		{"merchant of nobody", uuid.New(), "Shop", lending.CodeNotFound, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := tryTx(h.DB, func(tx *postgres.Tx) (any, error) {
				if test.partner == uuid.Nil {
					return h.CreatePartner(t.Context(), tx, test.text, "")
				}
				return h.CreateMerchant(t.Context(), tx, test.partner, test.text)
			})
			wantRefusal(t, err, test.code, test.field)
		})
	}
	if _, err := h.Partner(t.Context(), uuid.New()); lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("unknown partner: %v, want NOT_FOUND", err)
	}
	if _, err := h.Merchant(t.Context(), uuid.New()); lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("unknown merchant: %v, want NOT_FOUND", err)
	}
}

// walk reads all pages of a list through cursors in text form.
func walk[T any](
	t *testing.T, page func(cursor postgres.Cursor) ([]T, postgres.Cursor, error),
) (rows []T, pages int) {
	t.Helper()
	var cursor postgres.Cursor
	for {
		some, next, err := page(cursor)
		if err != nil {
			t.Fatal(err)
		}
		rows, pages = append(rows, some...), pages+1
		if next.IsZero() {
			return rows, pages
		}
		if cursor, err = postgres.ParseCursor(next.String()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListsPageNewestFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var want []uuid.UUID
	for i := range 7 {
		if i%2 == 0 { // pairs with one time, so that pages split a tie
			h.clock.advance(time.Second)
		}
		want = append(want, h.partner(t, "Partner").UID)
	}
	owner := want[0]
	merchants := h.merchants(t, owner, 3)
	h.merchants(t, want[1], 2)
	var clients []string
	for range 5 {
		issued := h.client(t, partner.NewClient{PartnerUID: owner, Group: true})
		clients = append(clients, issued.ClientID)
	}

	t.Run("partners", func(t *testing.T) {
		rows, pages := walk(t, func(c postgres.Cursor) ([]partner.Partner, postgres.Cursor, error) {
			return h.ListPartners(t.Context(), partner.Filter{}, postgres.Paging{From: c, Limit: 3})
		})
		if pages != 3 {
			t.Errorf("%d pages, want 3", pages)
		}
		sameSet(t, rows, want, func(p partner.Partner) uuid.UUID { return p.UID })
		newestFirst(t, rows, func(p partner.Partner) time.Time { return p.CreatedAt })
	})
	t.Run("merchants of one partner", func(t *testing.T) {
		rows, pages := walk(t, func(c postgres.Cursor) ([]partner.Merchant, postgres.Cursor, error) {
			return h.ListMerchants(t.Context(),
				partner.MerchantFilter{PartnerUID: owner}, postgres.Paging{From: c, Limit: 1})
		})
		if pages != 3 {
			t.Errorf("%d pages, want 3", pages)
		}
		sameSet(t, rows, merchants, func(m partner.Merchant) uuid.UUID { return m.UID })
		newestFirst(t, rows, func(m partner.Merchant) time.Time { return m.CreatedAt })
	})
	t.Run("clients made at one time", func(t *testing.T) {
		rows, pages := walk(t, func(c postgres.Cursor) ([]partner.Client, postgres.Cursor, error) {
			return h.ListClients(t.Context(), partner.ClientFilter{}, postgres.Paging{From: c, Limit: 2})
		})
		if pages != 3 {
			t.Errorf("%d pages, want 3", pages)
		}
		sameSet(t, rows, clients, func(c partner.Client) string { return c.ID })
	})
}

func sameSet[T any, K comparable](t *testing.T, rows []T, want []K, key func(T) K) {
	t.Helper()
	got := map[K]int{}
	for _, row := range rows {
		got[key(row)]++
	}
	for _, key := range want {
		if got[key] != 1 {
			t.Errorf("%v is listed %d times, want once", key, got[key])
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
}

func newestFirst[T any](t *testing.T, rows []T, at func(T) time.Time) {
	t.Helper()
	for i := 1; i < len(rows); i++ {
		if at(rows[i]).After(at(rows[i-1])) {
			t.Errorf("row %d of %v is newer than the one before it", i, at(rows[i]))
		}
	}
}

func TestListPartnersByName(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, name := range []string{"Acme Solar", "acme roofs", "Best Windows", "50% off_"} {
		h.partner(t, name)
	}
	tests := map[string]int{"": 4, "ACME": 2, "Best": 1, "50%": 1, "50": 1, "%": 0, "_": 0, "Roofs": 0}
	for prefix, want := range tests {
		rows, _, err := h.ListPartners(t.Context(), partner.Filter{Name: prefix},
			postgres.Paging{Limit: 50})
		if err != nil || len(rows) != want {
			t.Errorf("%q finds %d partners, %v, want %d", prefix, len(rows), err, want)
		}
	}
}

func TestListLimits(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	lists := map[string]func(limit int) error{
		"partners": func(limit int) error {
			_, _, err := h.ListPartners(t.Context(), partner.Filter{}, postgres.Paging{Limit: limit})
			return err
		},
		"merchants": func(limit int) error {
			_, _, err := h.ListMerchants(t.Context(), partner.MerchantFilter{},
				postgres.Paging{Limit: limit})
			return err
		},
		"clients": func(limit int) error {
			_, _, err := h.ListClients(t.Context(), partner.ClientFilter{}, postgres.Paging{Limit: limit})
			return err
		},
	}
	for name, list := range lists {
		for _, limit := range []int{1, 500} {
			if err := list(limit); err != nil {
				t.Errorf("%s with limit %d: %v", name, limit, err)
			}
		}
		for _, limit := range []int{-1, 0, 501} {
			wantRefusal(t, list(limit), lending.CodeValidation, "limit")
		}
	}
}
