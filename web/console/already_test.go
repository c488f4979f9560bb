package console_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"drawbridge/internal/loan"
	"drawbridge/views/paths"
)

// A stale link or a second tab leads to the present state.
func TestAMoveToWhereItIsAlready(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	app := r.Loan(t, r.NewProduct(t, "SOLAR", "50,50"))
	draw := fmt.Sprint(r.Draw(t, app.UID, loan.DrawInput{}).ID)
	page := paths.To(paths.Application, app.UID.String())
	made, _ := b.fillIn(changePath(app.UID, "task"), map[string]string{"title": "Send a photo"})
	made.wantStatus(t, http.StatusSeeOther)
	var task string
	r.must(r.DB.Get(&task, `SELECT task_uid FROM tasks WHERE application_uid = $1`, app.UID))
	for _, test := range []struct {
		path, notice string
		moved        bool // before
	}{
		{changePath(app.UID, "status", "to", "Approved"), "The application is Approved already.", true},
		{
			changePath(app.UID, "document", "to", "DOCUMENT_SENT"),
			"The documents are sent already.", false,
		},
		{
			changePath(app.UID, "document", "to", "DOCUMENT_SIGNED"),
			"The documents are signed already.", false,
		},
		{
			changePath(app.UID, "task-status", "task", task, "to", "Completed"),
			"The task is completed already.", false,
		},
		{
			changePath(app.UID, "funding", "draw", draw, "to", "FUNDING_PROCESSING"),
			"Draw #" + draw + " is processing already.", false,
		},
		{changePath(app.UID, "status", "to", "Closed"), "The application is Closed already.", false},
	} {
		again := func() answer { return b.get(test.path) }
		if !test.moved {
			action, values := b.get(test.path).wantStatus(t, http.StatusOK).formValues(t)
			again = func() answer { return b.post(action, values) } // a form that was open meanwhile
			moved, _ := b.fillIn(test.path, nil)
			moved.wantStatus(t, http.StatusSeeOther)
			b.get(page)
		}
		recorded, entries := r.recorded(app.UID), r.count(`SELECT count(*) FROM audit_log`)
		for _, ask := range []func() answer{func() answer { return b.get(test.path) }, again} {
			led := ask().wantStatus(t, http.StatusSeeOther)
			if led.Location != page {
				t.Errorf("%s leads to %q", test.path, led.Location)
			}
			got := b.get(page).wantStatus(t, http.StatusOK).text("main > .notice")
			if got != test.notice {
				t.Errorf("%s says %q, want %q", test.path, got, test.notice)
			}
		}
		if !slices.Equal(r.recorded(app.UID), recorded) ||
			r.count(`SELECT count(*) FROM audit_log`) != entries {
			t.Errorf("%s changed something", test.path)
		}
	}
}
