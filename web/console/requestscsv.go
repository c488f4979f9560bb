package console

import (
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
)

// requestColumns are the titles of the file; times are in UTC.
var requestColumns = []string{
	"request_uid", "at", "request_id", "method", "path", "route", "status", "error_code",
	"error_fields", "duration_ms", "client_id", "authenticated", "partner_uid", "partner",
	"merchant_uid", "merchant", "application_uid", "idempotency_key", "replayed", "bytes_in",
	"bytes_out", "address", "user_agent",
}

func requestCells(r apilog.Request) []string {
	return []string{
		r.UID.String(), r.At.UTC().Format(time.RFC3339Nano), r.RequestID, r.Method, r.Path, r.Route,
		strconv.Itoa(r.Status), string(r.ErrorCode), strings.Join(r.ErrorFields, " "),
		strconv.FormatFloat(float64(r.DurationUS)/1000, 'f', 3, 64), r.ClientID,
		strconv.FormatBool(r.Authenticated), known(r.PartnerUID), r.PartnerName,
		known(r.MerchantUID), r.MerchantName, known(r.ApplicationUID), r.IdempotencyKey,
		strconv.FormatBool(r.Replayed), strconv.FormatInt(r.BytesIn, 10),
		strconv.FormatInt(r.BytesOut, 10), r.Address, r.UserAgent,
	}
}

// partnerNames are the names of partners by their uids.
func partnerNames(owners []application.Owner) map[string]string {
	names := make(map[string]string, len(owners))
	for _, owner := range owners {
		names[owner.PartnerUID.String()] = owner.PartnerName
	}
	return names
}
