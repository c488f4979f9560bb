package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
)

// The merchants that another operator chose meanwhile are in force after a save that changed
// something else, and can be taken away by one who sees them.
func TestAStaleEditOfASubscriptionsMerchants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		began, theirs []string
		// yours is what the form has ticked, nil for what it began with; the conflict says so.
		yours []string
		// unticks is taken away once the conflict is shown.
		unticks, want string
	}{
		{
			name: "exchanged", began: []string{"Solar"}, theirs: []string{"Windows"},
			want: "Windows",
		},
		{
			name: "added", began: []string{"Solar"}, theirs: []string{"Solar", "Windows"},
			want: "Solar Windows",
		},
		{
			name: "added and taken away again", began: []string{"Solar"},
			theirs: []string{"Solar", "Windows"}, want: "Solar", unticks: "Windows",
		},
		{
			name: "taken away", began: []string{"Solar", "Windows"}, theirs: []string{"Solar"},
			want: "Solar",
		},
		{
			name: "changed by both", began: []string{"Solar"}, theirs: []string{"Windows"},
			yours: []string{"Roofs", "Solar"}, want: "Roofs Solar",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			b := r.asOperator()
			named := make(map[string]string)
			for _, name := range []string{"Roofs", "Solar", "Windows"} {
				named[name] = r.NewMerchant(t, r.Partner, name).String()
			}
			uids := func(names []string) (texts []string) {
				for _, name := range names {
					texts = append(texts, named[name])
				}
				return texts
			}
			made, _ := r.subscribe("https://hooks.example/")
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				patch := subscription.Patch{}
				for _, text := range uids(test.began) {
					patch.Merchants = append(patch.Merchants, uuid.MustParse(text))
				}
				_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, patch, "test")
				return err
			})
			path := paths.To(paths.SubscriptionEdit, made.UID.String())
			mine, theirs := edit(b.get(path)), edit(b.get(path))
			theirs["merchant"] = uids(test.theirs)
			b.post(path, theirs).wantStatus(t, http.StatusSeeOther)
			mine.Set("name", "Renamed")
			if test.yours != nil {
				mine["merchant"] = uids(test.yours)
			}
			conflict := b.post(path, mine).wantStatus(t, http.StatusConflict)
			yours := strings.Join(test.yours, ", ")
			if yours == "" {
				yours = "not changed by you: theirs stays"
			}
			if got := conflict.text("#conflict tbody tr:first-child td:last-child"); got != yours {
				t.Errorf("what was typed is shown as %q, want %q", got, yours)
			}
			if strings.Contains(conflict.text("#form-region"), "more are chosen and stay so") {
				t.Error("a merchant is chosen that the form does not show")
			}
			again := edit(conflict)
			again["merchant"] = slices.DeleteFunc(again["merchant"], func(uid string) bool {
				return uid == named[test.unticks]
			})
			b.post(path, again).wantStatus(t, http.StatusSeeOther)
			saved := r.onlySubscription()
			if got := r.merchantNames(saved.Merchants); got != test.want || saved.Name != "Renamed" {
				t.Errorf("%q covers %q, want %q", saved.Name, got, test.want)
			}
		})
	}
}

// merchantNames are the names of merchants in their order.
func (r *harness) merchantNames(uids []uuid.UUID) string {
	r.Helper()
	names := make([]string, 0, len(uids))
	for _, uid := range uids {
		merchant, err := r.Partners.Merchant(r.Context(), uid)
		r.must(err)
		names = append(names, merchant.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
