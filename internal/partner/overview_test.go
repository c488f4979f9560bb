package partner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

func TestSummaries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	sun := h.partner(t, "Sunvolt 100%")
	h.merchants(t, sun.UID, 2)
	gone := h.client(t, partner.NewClient{PartnerUID: sun.UID, Group: true})
	h.client(t, partner.NewClient{PartnerUID: sun.UID, Group: true})
	h.revoke(t, gone.ClientID)
	h.clock.advance(time.Second)
	wind := h.partner(t, "Windward")
	for name, want := range map[string][]uuid.UUID{
		"":        {wind.UID, sun.UID},
		"SUN":     {sun.UID},
		"sunvolt": {sun.UID},
		"%":       nil,
		"volt":    nil,
		"w":       {wind.UID},
	} {
		rows, next, err := h.Summaries(t.Context(), partner.Filter{Name: name},
			postgres.Paging{Limit: 50})
		if err != nil || !next.IsZero() {
			t.Fatalf("%q: next page %v, %v", name, next, err)
		}
		var got []uuid.UUID
		for _, row := range rows {
			got = append(got, row.UID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q lists %v, want %v", name, got, want)
		}
		count, err := h.CountPartners(t.Context(), partner.Filter{Name: name}, 10)
		if err != nil || count != len(want) {
			t.Errorf("%q counts %d, %v", name, count, err)
		}
	}
	first, next, err := h.Summaries(t.Context(), partner.Filter{}, postgres.Paging{Limit: 1})
	if err != nil || len(first) != 1 || next.IsZero() {
		t.Fatalf("first page %v, next %v, %v", first, next, err)
	}
	second, next, err := h.Summaries(t.Context(), partner.Filter{},
		postgres.Paging{From: next, Limit: 1})
	if err != nil || !next.IsZero() || second[0].UID != sun.UID || second[0].Merchants != 2 ||
		second[0].Clients != 1 {
		t.Errorf("second page %+v, next %v, %v", second, next, err)
	}
}

func TestRenaming(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner := h.partner(t, "Sunvolt")
	merchant := h.merchants(t, owner.UID, 1)[0]
	rename := func(uid uuid.UUID, name string) func(*postgres.Tx) (partner.Partner, error) {
		return func(tx *postgres.Tx) (partner.Partner, error) {
			before, _, err := h.UpdatePartner(t.Context(), tx, uid, partner.Change{Name: &name})
			return before, err
		}
	}
	before := inTx(t, h.DB, rename(owner.UID, " Sunvolt Energy "))
	if after, _ := h.Partner(t.Context(), owner.UID); before.Name != "Sunvolt" ||
		after.Name != "Sunvolt Energy" {
		t.Errorf("from %q to %q", before.Name, after.Name)
	}
	was := inTx(t, h.DB, func(tx *postgres.Tx) (partner.Merchant, error) {
		return h.RenameMerchant(t.Context(), tx, merchant, "Phoenix")
	})
	if after, _ := h.Merchant(t.Context(), merchant); was.Name != "A merchant" ||
		after.Name != "Phoenix" {
		t.Errorf("from %q to %q", was.Name, after.Name)
	}
	for _, name := range []string{"", "two\nlines", strings.Repeat("x", 201)} {
		_, err := tryTx(h.DB, rename(owner.UID, name))
		wantRefusal(t, err, lending.CodeValidation, "name")
		_, err = tryTx(h.DB, func(tx *postgres.Tx) (partner.Merchant, error) {
			return h.RenameMerchant(t.Context(), tx, merchant, name)
		})
		wantRefusal(t, err, lending.CodeValidation, "name")
	}
	_, err := tryTx(h.DB, rename(uuid.New(), "Nobody"))
	wantRefusal(t, err, lending.CodeNotFound, "")
	_, err = tryTx(h.DB, func(tx *postgres.Tx) (partner.Merchant, error) {
		return h.RenameMerchant(t.Context(), tx, uuid.New(), "Nobody")
	})
	wantRefusal(t, err, lending.CodeNotFound, "")
}

// The end of each valid secret is stored, and no more of it.
func TestHints(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	issued := h.plain(t)
	end := func(secret string) string { return secret[len(secret)-4:] }
	check := func(what, hint, previous string) {
		t.Helper()
		client, err := h.Client(context.Background(), issued.ClientID)
		if err != nil || client.Hint != hint || client.PreviousHint != previous {
			t.Errorf("%s: hints %q and %q, want %q and %q; %v", what, client.Hint,
				client.PreviousHint, hint, previous, err)
		}
	}
	check("issued", end(issued.Secret), "")
	first := h.rotate(t, issued.ClientID, time.Hour)
	check("rotated", end(first.Secret), end(issued.Secret))
	second := h.rotate(t, issued.ClientID, 0)
	check("rotated at once", end(second.Secret), "")
	h.rotate(t, issued.ClientID, time.Hour)
	h.revoke(t, issued.ClientID)
	if client, _ := h.Client(t.Context(), issued.ClientID); client.PreviousHint != "" {
		t.Errorf("a revoked client shows a previous secret, %q", client.PreviousHint)
	}
}

func TestClientsOfAMerchant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	owner := h.partner(t, "Group")
	merchants := h.merchants(t, owner.UID, 2)
	group := h.client(t, partner.NewClient{PartnerUID: owner.UID, Group: true})
	h.clock.advance(time.Second)
	plain := h.client(t, partner.NewClient{PartnerUID: owner.UID, MerchantUIDs: merchants[:1]})
	for i, want := range [][]string{{plain.ClientID, group.ClientID}, {group.ClientID}} {
		found, err := h.ClientsOf(t.Context(), merchants[i])
		var got []string
		for _, client := range found {
			got = append(got, client.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("merchant %d has %v, want %v; %v", i, got, want, err)
		}
	}
}
