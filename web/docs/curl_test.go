package docs

import (
	"os/exec"
	"testing"
)

func TestQuoteShellSurvivesAShell(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"plain", "", "two words", "it's", `"double"`, "$HOME", "`id`", "a\nb", "*", "-F", "ü&;|<>",
	} {
		output, err := exec.Command("bash", "-c", "printf %s "+quoteShell(word)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(output) != word {
			t.Errorf("%q came out as %q", word, output)
		}
	}
}
