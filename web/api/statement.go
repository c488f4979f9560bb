package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/calendar"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/statement"
)

// The headers of a statement: the base64 of the signature over the exact body, the id of
// the signing key, and the version, which an open statement does not have.
const (
	signatureHeader = "X-Drawbridge-Statement-Signature"
	keyHeader       = "X-Drawbridge-Statement-Key"
	versionHeader   = "X-Drawbridge-Statement-Version"
)

// maxLines bounds the lines that a partner may compare with a statement.
const maxLines = 10_000

// linesField is the array of those lines.
const linesField = "disbursements"

// statementList names the list in its cursors.
const statementList = "statements"

// statements serves the daily statements.
type statements struct {
	*edge

	service *statement.Service
}

func (s *statements) routes() []Route {
	return []Route{
		get("/v2/statements", "listStatements", s.list).forAll(),
		get("/v2/statements/:date", "getStatement", s.get),
		post("/v2/statements/:date/compare", "compareStatement", s.compare),
	}
}

type statementSummaryBody struct {
	Date          string        `json:"date"`
	MerchantUID   uuid.UUID     `json:"merchant_uid"`
	From          string        `json:"from"`
	Until         string        `json:"until"`
	Version       int           `json:"version"`
	FrozenAt      string        `json:"frozen_at"`
	KeyID         string        `json:"key_id"`
	Disbursements int           `json:"disbursements"`
	Events        int           `json:"events"`
	Gross         lending.Money `json:"gross"`
	Fee           lending.Money `json:"fee"`
	Net           lending.Money `json:"net"`
}

type statementsBody struct {
	Statements []statementSummaryBody `json:"statements"`
	NextCursor *string                `json:"next_cursor"`
}

func newStatementSummaryBody(s statement.Summary) statementSummaryBody {
	return statementSummaryBody{
		Date: s.Date(), MerchantUID: s.MerchantUID, From: formatTime(s.Begins),
		Until: formatTime(s.Ends), Version: s.Version, FrozenAt: formatTime(s.FrozenAt),
		KeyID: s.KeyID, Disbursements: s.Disbursements, Events: s.Events,
		Gross: s.Gross, Fee: s.Fee, Net: s.Net,
	}
}

// list answers with the frozen statements of the caller's merchants.
func (s *statements) list(c echo.Context) error {
	query := readQuery(c)
	filter := statement.Filter{
		Merchants: append([]uuid.UUID{}, merchantsOf(c)...),
		Since:     query.date("since"), Until: query.date("until"),
	}
	page := query.page(statementList)
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := s.service.List(c.Request().Context(), filter, page)
	return s.answer(c, statementsBody{
		each(found, newStatementSummaryBody), cursorOf(statementList, next),
	}, err)
}

// date reads a day, empty if it is absent.
func (q *query) date(name string) string {
	given, ok := q.one(name)
	if !ok {
		return ""
	}
	day, err := parseDate(name, given)
	if err != nil {
		q.errs.Merge(err)
		return ""
	}
	return day.String()
}

// parseDate reads a day. Error: VALIDATION_ERROR that names it.
func parseDate(name, text string) (calendar.Date, error) {
	day, err := calendar.ParseDate(text)
	if err != nil || day.Year < 1 {
		return day, lending.Invalid(name, "%q must be a date such as 2026-11-20", name)
	}
	return day, nil
}

// wanted returns the statement that the path names, of the caller's merchant.
func (s *statements) wanted(c echo.Context) (statement.Query, error) {
	date, err := parseDate("date", c.Param("date"))
	return statement.Query{MerchantUID: callerOf(c).MerchantUID, Date: date}, err
}

// get answers with a statement exactly as it was signed.
func (s *statements) get(c echo.Context) error {
	wanted, err := s.wanted(c)
	if err != nil {
		return err
	}
	query := readQuery(c)
	wanted.Format = query.format(c)
	wanted.Version = query.number("version", 1, 1<<31-1, 0)
	if err := query.errs.Err(); err != nil {
		return err
	}
	file, err := s.service.Read(c.Request().Context(), wanted)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Add(echo.HeaderVary, echo.HeaderAccept)
	header.Set(signatureHeader, base64.StdEncoding.EncodeToString(file.Signature))
	header.Set(keyHeader, file.KeyID)
	if file.Version > 0 {
		header.Set(versionHeader, strconv.Itoa(file.Version))
	}
	if wanted.Format == statement.CSV {
		header.Set(echo.HeaderContentDisposition,
			fmt.Sprintf(`attachment; filename="statement-%s.csv"`, wanted.Date))
	}
	return c.Blob(http.StatusOK, wanted.Format.ContentType(), file.Content)
}

// format reads the format of the statement: as the query says, or else CSV if the Accept
// header names CSV and not JSON.
func (q *query) format(c echo.Context) statement.Format {
	given, ok := q.one("format")
	switch format := statement.Format(given); {
	case ok && format != statement.JSON && format != statement.CSV:
		q.errs.Add("format", `"format" must be one of %s`, lending.JoinNames(statement.Formats()))
	case ok:
		return format
	}
	format := statement.JSON
	for part := range strings.SplitSeq(strings.Join(c.Request().Header.Values("Accept"), ","), ",") {
		switch media, _, _ := mime.ParseMediaType(part); media {
		case echo.MIMEApplicationJSON:
			return statement.JSON
		case "text/csv":
			format = statement.CSV
		}
	}
	return format
}

// compare answers with the differences between a partner's books and the statement.
func (s *statements) compare(c echo.Context) error {
	wanted, pathErr := s.wanted(c)
	return s.jsonEffect(c, pathErr, func(body *object) operation {
		books := body.lines(linesField)
		return func(tx *postgres.Tx) (int, any, error) {
			found, err := s.service.Compare(c.Request().Context(), tx, wanted, books)
			return http.StatusOK, found, err
		}
	})
}

// lines reads disbursements with their net amounts, each at most once.
func (o *object) lines(field string) []statement.Line {
	if !o.required(field) {
		return nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(o.raw[field], &entries); err != nil || len(entries) > maxLines {
		o.errs.Add(field, "%q must be an array of at most %d objects", field, maxLines)
		return nil
	}
	lines := make([]statement.Line, 0, len(entries))
	seen := make(map[int64]bool, len(entries))
	for i, raw := range entries {
		if len(*o.errs) >= maxMemberErrors {
			break // name no more
		}
		name := lending.EntryPath(field, i)
		entry := &object{prefix: name + ".", errs: o.errs}
		if err := json.Unmarshal(raw, &entry.raw); err != nil || entry.raw == nil {
			o.errs.Add(name, "%q must be an object", name)
			continue
		}
		line := statement.Line{ID: entry.id(disbursementField)}
		if entry.required("net") {
			line.Net, _ = entry.amount("net")
		}
		if line.ID > 0 && seen[line.ID] {
			name := entry.name(disbursementField)
			o.errs.Add(name, "%q must be given once", name)
		}
		seen[line.ID] = true
		lines = append(lines, line)
	}
	return lines
}

// id reads the required id of a disbursement, zero if it is not valid.
func (o *object) id(field string) int64 {
	if !o.required(field) {
		return 0
	}
	var id int64
	if err := json.Unmarshal(o.raw[field], &id); err != nil || id < 1 {
		o.errs.Add(o.name(field), "%q must be a whole number", o.name(field))
		return 0
	}
	return id
}
