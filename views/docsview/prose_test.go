package docsview

import (
	"strings"
	"testing"
)

// TestBreakingKeepsTheText copies what a reader would from a name that may break.
func TestBreakingKeepsTheText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"POST /v2/application", "go install ./cmd/samplepartner", "8000.00", "DRAW_PENDING",
		"https://drawbridge.example/v2", "",
	} {
		var page strings.Builder
		if err := breaking(name).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(page.String(), "<wbr>", ""); got != name {
			t.Errorf("%q is shown as %q", name, got)
		}
	}
}
