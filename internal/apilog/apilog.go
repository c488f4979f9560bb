// Package apilog keeps the partners' API requests, for support to look up.
//
// A row shows who called what, when, from where and with which outcome. It holds no body, no
// query, no header except the request id and the idempotency key, and of a refusal only the code
// and the names of wrong fields: it contains nothing that a borrower said, so it needs no
// redaction.
//
// Rows are written off the request's path. Record puts an entry into a bounded buffer and
// returns; Writer.Run takes batches out and stores each in one statement. When the database is
// slow the buffer fills, and entries that do not fit are dropped and counted rather than
// delaying a request. Entries carry their own identifier, so storing a batch again after a lost
// connection adds nothing.
package apilog

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Bounds of texts chosen by the client, in bytes.
const (
	maxPath  = 500
	maxAgent = 200
	maxKey   = 255
	// maxFields bounds the wrong fields of one refusal.
	maxFields = 20
)

// Entry is one request.
type Entry struct {
	// UID identifies the entry; its time is At.
	UID uuid.UUID `db:"request_uid"`
	// At is when the request began.
	At time.Time `db:"at"`
	// RequestID is the X-Request-Id of the response, which the client may choose.
	RequestID string `db:"request_id"`
	Method    string `db:"method"`
	// Route is the route's pattern, empty if no route matched; Path is the requested path without
	// its query.
	Route string `db:"route"`
	Path  string `db:"path"`
	// ClientID is the client that called. If Authenticated is false it is only the one that the
	// request named, empty if it named none.
	ClientID      string `db:"client_id"`
	Authenticated bool   `db:"authenticated"`
	// PartnerUID, MerchantUID and ApplicationUID are the nil UUID if unknown.
	PartnerUID     uuid.UUID `db:"partner_uid"`
	MerchantUID    uuid.UUID `db:"merchant_uid"`
	ApplicationUID uuid.UUID `db:"application_uid"`
	Status         int       `db:"status"`
	// ErrorCode is empty for a success; ErrorFields names the wrong fields.
	ErrorCode   lending.Code   `db:"error_code"`
	ErrorFields pq.StringArray `db:"error_fields"`
	// IdempotencyKey is empty if there was none; Replayed means that the response was that of an
	// earlier request.
	IdempotencyKey string        `db:"idempotency_key"`
	Replayed       bool          `db:"replayed"`
	Duration       time.Duration `db:"duration"`
	// BytesIn and BytesOut are the sizes of the bodies.
	BytesIn  int64 `db:"bytes_in"`
	BytesOut int64 `db:"bytes_out"`
	// Address is the peer's network address.
	Address   string `db:"address"`
	UserAgent string `db:"user_agent"`
}

// Service reads the log.
type Service struct {
	DB *postgres.DB
}

// clean bounds the texts that the client chose and makes them storable. It copies them, because
// the strings of a request keep all of its head in memory.
func (e Entry) clean() Entry {
	e.Path = cleanText(e.Path, maxPath)
	e.UserAgent = cleanText(e.UserAgent, maxAgent)
	e.IdempotencyKey = cleanText(e.IdempotencyKey, maxKey)
	e.ClientID = cleanText(e.ClientID, maxKey)
	e.RequestID = cleanText(e.RequestID, maxKey)
	e.Method = cleanText(e.Method, maxAgent)
	fields := pq.StringArray{}
	for _, field := range e.ErrorFields[:min(len(e.ErrorFields), maxFields)] {
		fields = append(fields, strings.ReplaceAll(cleanText(field, maxAgent), "\n", " "))
	}
	e.ErrorFields = fields
	return e
}

// cleanText cuts text to limit bytes and replaces what a database text cannot hold.
func cleanText(text string, limit int) string {
	text = strings.Clone(text[:min(len(text), limit)])
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
