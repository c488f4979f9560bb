package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// A refusal uses the form's labels, whichever of its fields it names.
func TestARefusalSpeaksTheWordsOfTheForm(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	app := r.Loan(t, r.NewProduct(t, "SOLAR", "50,50"))
	empty, _ := b.fillIn(changePath(app.UID, "terms"), nil)
	const want = "At least one of term in months, interest rate in percent and merchant fee in percent"
	got := empty.wantStatus(t, http.StatusBadRequest).text("#ask-term-fault")
	if !strings.HasPrefix(got, want) {
		t.Errorf("no terms: %q, want %q", got, want)
	}
	long, _ := b.fillIn(changePath(app.UID, "task"), map[string]string{
		"title": "Send a photo", "reason": strings.Repeat("x", 501),
	})
	got = long.wantStatus(t, http.StatusBadRequest).text("main [role=alert]")
	if !strings.Contains(got, "The reason must have at most 500 characters.") {
		t.Errorf("a long reason: %q", got)
	}
}
