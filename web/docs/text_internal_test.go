package docs

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestExcerptOfLongWords expects an excerpt even if there is no space nearby.
func TestExcerptOfLongWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", excerptLength)
	for _, text := range []string{"word " + long, long + " word", long + "word" + long + " end"} {
		shown := excerpt(text, "word")
		if !utf8.ValidString(shown) || !strings.Contains(shown, "word") {
			t.Errorf("%q shows no word", shown)
		}
	}
}
