package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"List the audit log, newest first."`
}

// auditJSON is a line of the audit log as commands print it.
type auditJSON struct {
	ID          int64           `json:"entry_id"`
	At          time.Time       `json:"at"`
	Actor       string          `json:"actor"`
	Address     *string         `json:"address"`
	Action      string          `json:"action"`
	SubjectKind string          `json:"subject_kind"`
	Subject     string          `json:"subject"`
	Reason      *string         `json:"reason"`
	Before      json.RawMessage `json:"before"`
	After       json.RawMessage `json:"after"`
}

type auditListCmd struct {
	Actor   string `help:"Only what this person, command or system did, such as 'payments (dbc_...)'." placeholder:"NAME"`
	Action  string `help:"Only this action, or all that begin with it when it ends with a dot." placeholder:"ACTION"`
	Subject string `help:"Only what was done to this subject." placeholder:"ID"`
	Since   string `help:"At or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until   string `help:"Before." placeholder:"TIME"`
	Limit   int    `default:"50" help:"How many, at most 500."`
	Cursor  string `help:"Where to go on, as the last page said." placeholder:"CURSOR"`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// Run lists the audit log.
func (cmd auditListCmd) Run(env *environment) error {
	filter := operator.AuditFilter{
		Actor: cmd.Actor, Action: cmd.Action, Subject: cmd.Subject, Limit: cmd.Limit,
		Since: env.time("--since", cmd.Since), Until: env.time("--until", cmd.Until),
	}
	if cmd.Limit < 1 || cmd.Limit > postgres.MaxPage {
		env.refusef("--limit must be from 1 to %d", postgres.MaxPage)
	}
	if cmd.Cursor != "" {
		var err error
		if filter.Before, err = strconv.ParseInt(cmd.Cursor, 10, 64); err != nil || filter.Before < 1 {
			env.refusef("--cursor is %q, which is none that a list returned", cmd.Cursor)
		}
	}
	return rowsOf("entries", newAuditJSON, "AT\tACTOR\tACTION\tSUBJECT\tREASON",
		func(w io.Writer, r operator.Record) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\n", r.At.UTC().Format(time.RFC3339), r.Actor, r.Action,
				r.SubjectKind, r.Subject, r.Reason)
		}).pageBy(env, cmd.JSON, func(s *app.Services) ([]operator.Record, string, error) {
		records, more, err := operator.AuditLog{DB: s.DB}.List(env.ctx, filter)
		if err != nil || !more {
			return records, "", err
		}
		return records, strconv.FormatInt(records[len(records)-1].ID, 10), nil
	})
}

func newAuditJSON(r operator.Record) auditJSON {
	return auditJSON{
		ID: r.ID, At: r.At.UTC(), Actor: r.Actor, Address: orNull(r.Address), Action: r.Action,
		SubjectKind: r.SubjectKind, Subject: r.Subject, Reason: orNull(r.Reason),
		Before: r.Before, After: r.After,
	}
}
