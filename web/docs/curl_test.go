package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
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

// The commands of the reference name what they intend, so that one that is sent again changes
// nothing: no key comes twice, and none is made again by the shell.
func TestCommandsHaveKeysOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	code := page(t, site(t), Prefix+"/reference").Find(".operation-code code")
	code.Each(func(_ int, command *goquery.Selection) {
		_, key, found := strings.Cut(command.Text(), "Idempotency-Key: ")
		if key, _, _ = strings.Cut(key, "'"); !found {
			return
		}
		if seen[key] || strings.Contains(key, "$") {
			t.Errorf("the key %q is random, or another command's too", key)
		}
		seen[key] = true
	})
	if len(seen) < 15 {
		t.Errorf("only %d commands have a key", len(seen))
	}
}
