package statement_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/calendar"
	"drawbridge/internal/statement"
)

// world is a lender whose days are in UTC and whose clock is set to noon of a Tuesday.
type world struct {
	*apptest.Harness

	t       *testing.T
	clock   *apptest.Clock
	tuesday time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := apptest.NewClock()
	at := clock.Now().Truncate(24 * time.Hour).Add(12 * time.Hour)
	for at.Weekday() != time.Tuesday {
		at = at.Add(24 * time.Hour)
	}
	clock.Set(at)
	w := &world{apptest.NewAt(t, clock), t, clock, at}
	w.Statements.Calendar = calendar.Calendar{}
	return w
}

// date returns the day that many days after the Tuesday.
func (w *world) date(days int) calendar.Date {
	day, err := calendar.ParseDate(w.tuesday.AddDate(0, 0, days).Format(time.DateOnly))
	if err != nil {
		w.t.Fatal(err)
	}
	return day
}

// due moves the clock to when statements of the day, so many days after the Tuesday, are due.
func (w *world) due(days int) {
	w.clock.Set(w.tuesday.Truncate(24*time.Hour).AddDate(0, 0, days+1).Add(statement.Grace))
}

func (w *world) freeze() statement.Report {
	w.t.Helper()
	report, err := w.Statements.Freeze(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// written is a statement as its readers parse it.
type written struct {
	Timestamp string `json:"timestamp"`
	Result    struct {
		Data struct {
			Date        string    `json:"date"`
			MerchantUID uuid.UUID `json:"merchant_uid"`
			From        time.Time `json:"from"`
			Until       time.Time `json:"until"`
			State       string    `json:"state"`
			Version     *int      `json:"version"`
			Replaces    *struct {
				Version int    `json:"version"`
				SHA256  string `json:"sha256"`
			} `json:"replaces"`
			FrozenAt *string `json:"frozen_at"`
			KeyID    string  `json:"key_id"`
			Totals   struct {
				sums

				ByStatus map[string]sums `json:"by_status"`
			} `json:"totals"`
			Disbursements []struct {
				ID                int64   `json:"merchantDisbursementId"`
				ExternalReference *string `json:"external_reference"`
				Status            string  `json:"status"`
				Gross             string  `json:"gross"`
				Net               string  `json:"net"`
				Reference         *string `json:"reference"`
				Changes           []struct {
					Status    string    `json:"status"`
					At        time.Time `json:"at"`
					Reference *string   `json:"reference"`
				} `json:"changes"`
			} `json:"disbursements"`
			Events []struct {
				UID        uuid.UUID `json:"event_uid"`
				Event      string    `json:"event"`
				Deliveries []struct {
					UID         uuid.UUID `json:"delivery_uid"`
					Outcome     string    `json:"outcome"`
					DeliveredAt *string   `json:"delivered_at"`
				} `json:"deliveries"`
			} `json:"events"`
		} `json:"data"`
	} `json:"result"`
}

// sums are amounts in a statement.
type sums struct {
	Count int    `json:"count" db:"count"`
	Gross string `json:"gross" db:"gross"`
	Fee   string `json:"fee" db:"fee"`
	Net   string `json:"net" db:"net"`
}

func (w *world) get(wanted statement.Query) (statement.File, error) {
	return w.Statements.Read(w.t.Context(), wanted)
}

// read returns a statement of the merchant and checks its signature.
func (w *world) read(days, version int) (statement.File, written) {
	w.t.Helper()
	file, err := w.get(statement.Query{
		MerchantUID: w.Merchant, Date: w.date(days), Version: version, Format: statement.JSON,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.verify(file)
	var read written
	if err := json.Unmarshal(file.Content, &read); err != nil {
		w.t.Fatal(err)
	}
	return file, read
}

// verify checks a signature with the published key, and that any other bytes fail.
func (w *world) verify(file statement.File) {
	w.t.Helper()
	keys, err := w.Statements.PublicKeys(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, key := range keys {
		if key.ID != file.KeyID {
			continue
		}
		block, _ := pem.Decode([]byte(key.PublicKey))
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			w.t.Fatal(err)
		}
		public, _ := parsed.(ed25519.PublicKey)
		if !ed25519.Verify(public, file.Content, file.Signature) {
			w.t.Error("the signature is not that of the bytes")
		}
		flipped := append([]byte{}, file.Content...)
		flipped[len(flipped)/2] ^= 1
		if ed25519.Verify(public, flipped, file.Signature) {
			w.t.Error("the signature holds for other bytes")
		}
		return
	}
	w.t.Errorf("the key %q is not published", file.KeyID)
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
