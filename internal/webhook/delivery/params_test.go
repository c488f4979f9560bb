package delivery_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// The hand-written JSON is parsed to the same value as the library's.
func TestHeadersAsJSON(t *testing.T) {
	t.Parallel()
	header := rapid.Custom(func(t *rapid.T) sender.Header {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z-]{1,20}`),
			rapid.StringMatching(`[ -~]{0,40}`), rapid.Just("\xff\"\\\x00\x7f\u2028<é>"))
		return sender.Header{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
	})
	rapid.Check(t, func(t *rapid.T) {
		headers := rapid.SliceOf(header).Draw(t, "headers")
		library, err := json.Marshal(headers)
		if err != nil {
			t.Fatal(err)
		}
		text := delivery.HeadersJSON(headers)
		var got, want []sender.Header
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := json.Unmarshal(library, &want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is read as %q, want %q", text, got, want)
		}
	})
}
