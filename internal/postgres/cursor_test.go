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

// Whatever stands in an address is a place in a list or a refusal that names
// the cursor, and a place is written the same way again.
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
