package statement

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/sheet"
)

// File is a statement in one format, byte for byte as it was signed.
type File struct {
	Content   []byte
	Signature []byte
	KeyID     string
	// Version is zero for an open statement.
	Version int
}

// edition identifies the statement that is written.
type edition struct {
	day
	merchant uuid.UUID
	// version is zero for an open statement, replaces nil for the first one.
	version  int
	replaces *replaced
	at       time.Time
}

// encode encodes our own values as JSON, which cannot fail for them.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// json writes the statement as the API returns it, envelope included; the timestamp of the
// envelope is when it was frozen.
func (c *content) json(e edition, keyID string) []byte {
	data := document{
		Date: e.date(), MerchantUID: e.merchant, From: formatTime(e.Begins), Until: formatTime(e.Ends),
		State: Open, Replaces: e.replaces, KeyID: keyID, content: *c,
	}
	if e.version > 0 {
		data.State, data.Version, data.FrozenAt = Frozen, &e.version, new(formatTime(e.at))
	}
	return append(encode(envelope{
		Timestamp: formatTime(e.at), StatusCode: http.StatusOK, Result: result{Data: &data},
	}), '\n')
}

// envelope is the form of every response of the API.
type envelope struct {
	Timestamp  string `json:"timestamp"`
	StatusCode int    `json:"statusCode"`
	Result     result `json:"result"`
}

type result struct {
	Data  *document `json:"data"`
	Error *struct{} `json:"error"`
}

// columns are the columns of the CSV form; the first gives the type of a row.
var columns = []string{
	"record", "date", "version", "merchant_uid", "id", "application_uid", "external_reference",
	"number", "kind", "status", "at", "gross", "fee", "net", "count", "reference", "method",
	"effective_date", "reason", "subscription_uid", "delivery_uid", "outcome", "delivered_at",
}

// row is a row of the CSV form, by column.
type row map[string]string

// csv writes the statement as rows: one for the statement, then each disbursement with its
// changes, each event with its deliveries, and the totals. Only rows of disbursements and totals
// have amounts.
func (c *content) csv(e edition, keyID string) []byte {
	var out bytes.Buffer
	writer := csv.NewWriter(&out)
	version, state := "", Open
	if e.version > 0 {
		version, state = strconv.Itoa(e.version), Frozen
	}
	write := func(record string, cells row) {
		line := make([]string, len(columns))
		for i, column := range columns {
			line[i] = sheet.Inert(cells[column])
		}
		line[0], line[1], line[2], line[3] = record, e.date(), version, e.merchant.String()
		_ = writer.Write(line) // writing to a buffer cannot fail
	}
	_ = writer.Write(columns)
	head := row{"id": keyID, "status": string(state), "at": formatTime(e.at)}
	if e.replaces != nil {
		head["number"] = strconv.Itoa(e.replaces.Version)
	}
	write("statement", head)
	for _, d := range c.Disbursements {
		id := strconv.FormatInt(d.ID, 10)
		cells := evidenceRow(d.Evidence)
		cells["id"], cells["application_uid"] = id, d.ApplicationUID.String()
		cells["external_reference"] = postgres.OrZero(d.ExternalReference)
		cells["number"] = strconv.Itoa(d.Number)
		cells["kind"], cells["status"] = string(d.Kind), string(d.Status)
		cells["at"] = d.Changes[len(d.Changes)-1].At
		cells["gross"], cells["fee"], cells["net"] = d.Gross.String(), d.Fee.String(), d.Net.String()
		write("disbursement", cells)
		for _, made := range d.Changes {
			cells := evidenceRow(made.Evidence)
			cells["id"], cells["status"], cells["at"] = id, string(made.Status), made.At
			write("change", cells)
		}
	}
	for _, event := range c.Events {
		cells := event.row()
		write("event", cells)
		for _, made := range event.Deliveries {
			write("delivery", row{
				"id": cells["id"], "subscription_uid": made.SubscriptionUID.String(),
				"delivery_uid": made.UID.String(), "outcome": string(made.Outcome),
				"delivered_at": postgres.OrZero(made.DeliveredAt),
			})
		}
	}
	for _, status := range lending.AllFundingStatuses() {
		cells := c.Totals.ByStatus[status].row()
		cells["status"] = string(status)
		write("total", cells)
	}
	write("total", c.Totals.row())
	writer.Flush()
	return out.Bytes()
}

func evidenceRow(e lending.Evidence) row {
	return row{
		"reference": postgres.OrZero(e.Reference), "method": postgres.OrZero(e.Method),
		"effective_date": postgres.OrZero(e.EffectiveDate), "reason": postgres.OrZero(e.Reason),
	}
}

func (e event) row() row {
	cells := row{
		"id": e.UID.String(), "application_uid": e.ApplicationUID.String(),
		"external_reference": postgres.OrZero(e.ExternalReference), "kind": string(e.Kind),
		"status": e.Status, "at": e.Timestamp,
	}
	if e.Sequence != nil {
		cells["number"] = strconv.FormatInt(*e.Sequence, 10)
	}
	return cells
}

func (a amounts) row() row {
	return row{
		"count": strconv.Itoa(a.Count), "gross": a.Gross.String(), "fee": a.Fee.String(),
		"net": a.Net.String(),
	}
}
