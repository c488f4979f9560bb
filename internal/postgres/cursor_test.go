package postgres_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Any text in an address is a position in a list or is refused with an error that names the cursor,
// and a position is formatted back the same way.
func FuzzParseCursor(f *testing.F) {
	f.Add("")
	f.Add(postgres.Cursor{At: time.UnixMicro(1_790_000_000_000_001), UID: uuid.Max}.String())
	f.Add("eyJ2IjoyfQ")
	f.Add(postgres.Cursor{At: time.UnixMicro(math.MinInt64), UID: uuid.Max}.String())
	f.Add("not a cursor")
	f.Fuzz(func(t *testing.T, text string) {
		cursor, err := postgres.ParseCursor(text)
		if err != nil {
			if refusal, ok := errors.AsType[*lending.Error](err); !ok ||
				refusal.Code != lending.CodeValidation {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if year := cursor.At.Year(); year < 1 || year > 9999 {
			t.Errorf("%q is in the year %d, which no list has", text, year)
		}
		again, err := postgres.ParseCursor(cursor.String())
		if err != nil || !again.At.Equal(cursor.At) || again.UID != cursor.UID {
			t.Errorf("%q is %v, written and read again %v, %v", text, cursor, again, err)
		}
	})
}

// TestStorable accepts the times between the first instant of the year 1 and the year 10000, in any
// zone, and returns them in UTC.
func TestStorable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-27T00:00:00+16:00": "2026-11-26T08:00:00Z",
		"2026-11-27T00:00:00-23:59": "2026-11-27T23:59:00Z",
		"0001-01-01T00:00:01Z":      "0001-01-01T00:00:01Z",
		"0000-12-31T23:00:00-02:00": "0001-01-01T01:00:00Z",
		"9999-12-31T23:59:59Z":      "9999-12-31T23:59:59Z",
		"0001-01-01T00:00:00Z":      "",
		"0001-01-01T16:00:00+16:00": "",
		"0000-06-01T00:00:00Z":      "",
		"0001-01-01T00:00:00+01:00": "",
		"9999-12-31T23:59:59-01:00": "",
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		at, ok := postgres.Storable(at)
		if ok {
			got = at.Format(time.RFC3339)
		}
		if got != want || ok == at.IsZero() {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
