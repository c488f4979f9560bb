package docsview

import (
	"slices"
	"strings"
	"testing"
)

func TestBreakable(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		want []string
	}{
		{"", nil},
		{"status", []string{"status"}},
		{"DRAW_PENDING", []string{"DRAW_", "PENDING"}},
		{"/v2/sandbox/task/{task_uid}", []string{"/", "v2/", "sandbox/", "task/", "{task_", "uid}"}},
		{"projectCompletedEarly=true", []string{"project", "Completed", "Early=", "true"}},
		{"https://drawbridge.example/v2", []string{"https://drawbridge.example/v2"}},
	}
	for _, test := range cases {
		if got := breakable(test.name); !slices.Equal(got, test.want) {
			t.Errorf("%q may break as %q, want %q", test.name, got, test.want)
		}
	}
}

// TestBreakingKeepsTheText copies what a reader would from a name that may break.
func TestBreakingKeepsTheText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"POST /v2/application", "go install ./cmd/samplepartner", "8000.00", "DRAW_PENDING",
		"https://drawbridge.example/v2", "projectCompletedEarly=true", "größe_a", "",
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
