package contracttest

import (
	"strings"
	"testing"

	"drawbridge/web/docs"
)

// kept returns an output that keeps every promise of the steps.
func kept(t *testing.T) string {
	t.Helper()
	steps, err := docs.QuickStart(base)
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	for _, step := range steps {
		output.WriteString(stepMark + step.ID + "\n")
		output.WriteString(strings.Join(step.Expect, " ") + "\n")
	}
	return output.String()
}

func TestPromisesOfTheQuickStart(t *testing.T) {
	t.Parallel()
	output := kept(t)
	early, _, _ := strings.Cut(output, stepMark+"done")
	cases := []struct{ name, output, fault string }{
		{"kept", output, ""},
		{
			"another balance", strings.Replace(output, `"balance":"0.00"`, `"balance":"1.00"`, 1),
			"step done",
		},
		{
			"printed by another step only",
			strings.Replace(output, `"offer_selected":true`, "", 1) + `"offer_selected":true`,
			"step accept",
		},
		{"stopped early", early, "did not begin"},
	}
	for _, test := range cases {
		err := CheckQuickStart(test.output)
		if test.fault == "" && err != nil ||
			test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.fault)
		}
	}
}
