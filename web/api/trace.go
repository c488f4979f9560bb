package api

import (
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
)

// Trace is what the request log records of a request beyond HTTP.
type Trace struct {
	// Caller is the sender; its ClientID is empty until the credentials were accepted.
	Caller partner.Caller
	// ClaimedID is the client id that the request presented, right or wrong.
	ClaimedID string
	// ApplicationUID is the application or loan concerned, the nil UUID if none is known.
	ApplicationUID uuid.UUID
	// Code and Fields are those of the refusal, empty on success.
	Code   lending.Code
	Fields []string
	// Replayed means that the answer is the stored answer of an earlier request.
	Replayed bool
}

// traceKey is where the context keeps the trace.
const traceKey = "api.trace"

// TraceOf returns the trace of a request after it was answered.
func TraceOf(c echo.Context) Trace {
	trace := *traceOf(c)
	trace.Caller, _ = c.Get(callerKey).(partner.Caller)
	trace.ClaimedID = c.Request().Header.Get(clientIDHeader)
	trace.Replayed = c.Response().Header().Get(replayedHeader) != ""
	return trace
}

func traceOf(c echo.Context) *Trace {
	if trace, ok := c.Get(traceKey).(*Trace); ok {
		return trace
	}
	trace := new(Trace)
	c.Set(traceKey, trace)
	return trace
}

// TraceError records the refusal of a request.
func TraceError(c echo.Context, err error) {
	trace := traceOf(c)
	trace.Code = lending.ErrorCode(err)
	if refusal, ok := errors.AsType[*lending.Error](err); ok {
		for _, detail := range refusal.Details {
			trace.Fields = append(trace.Fields, detail.Field)
		}
	}
}

// traceNamed records the application that a body names, if any.
func traceNamed(c echo.Context, raw []byte) {
	var body struct {
		UID string `json:"thrive_application_uid"`
	}
	if json.Unmarshal(raw, &body) == nil {
		traceUID(c, body.UID)
	}
}

func traceUID(c echo.Context, text string) {
	if uid, err := uuid.Parse(text); err == nil {
		traceOf(c).ApplicationUID = uid
	}
}

// traceReply records the application of an answer.
func traceReply(c echo.Context, body []byte) {
	var answer struct {
		Result struct {
			Data struct {
				Application string `json:"thrive_application_uid"`
				Loan        string `json:"loanApplicationUid"`
			} `json:"data"`
		} `json:"result"`
	}
	if traceOf(c).ApplicationUID == uuid.Nil && json.Unmarshal(body, &answer) == nil {
		traceUID(c, answer.Result.Data.Application)
		traceUID(c, answer.Result.Data.Loan)
	}
}
