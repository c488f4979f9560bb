package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/term"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type userCmd struct {
	Create   userCreateCmd   `cmd:"" help:"Create a console user; the password is read from stdin or prompted."`
	List     userListCmd     `cmd:"" help:"List the users."`
	Disable  userDisableCmd  `cmd:"" help:"End a user's access."`
	Password userPasswordCmd `cmd:"" help:"Set a user's password, read from stdin or prompted."`
}

// userJSON is a user as commands print it.
type userJSON struct {
	UID      uuid.UUID     `json:"user_uid"`
	Email    string        `json:"email"`
	Name     string        `json:"name"`
	Role     operator.Role `json:"role"`
	Disabled bool          `json:"disabled"`
}

func newUserJSON(user operator.User) userJSON {
	return userJSON{
		UID: user.UID, Email: user.Email, Name: user.Name, Role: user.Role,
		Disabled: user.DisabledAt != nil,
	}
}

func printUser(w io.Writer, user operator.User) {
	state := ""
	if user.DisabledAt != nil {
		state = "  disabled"
	}
	fmt.Fprintf(w, "%s\t%s\t%s%s\n", user.Email, user.Role, user.Name, state)
}

type userCreateCmd struct {
	Email string `required:"" help:"Address to sign in with." placeholder:"ADDRESS"`
	Name  string `required:"" help:"The person's name." placeholder:"TEXT"`
	Role  string `required:"" help:"admin, operator or support." placeholder:"ROLE"`

	MustChange bool `help:"Require a new password at the first sign-in."`
	JSON       bool `name:"json" help:"Print one JSON document."`
}

// Run creates a user.
func (cmd userCreateCmd) Run(env *environment) error {
	request := operator.NewUser{
		Email: cmd.Email, Name: cmd.Name, Role: operator.Role(cmd.Role),
		Password: env.readPassword(), MustChange: cmd.MustChange,
	}
	return env.changeUser(cmd.JSON, "user.create", "",
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.Create(env.ctx, tx, request)
		})
}

type userListCmd struct{ listFlags }

// Run lists the users.
func (cmd userListCmd) Run(env *environment) error {
	return rowsOf("users", newUserJSON, "E-MAIL\tROLE\tNAME", printUser).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]operator.User, postgres.Cursor, error) {
			return s.Operators.NewestUsers(env.ctx, page)
		})
}

// userNamed takes the user's address as an argument or by the flag that create has.
type userNamed struct {
	Address string `arg:"" optional:"" name:"email" help:"Address of the user."`
	Email   string `help:"Address of the user, as a flag." placeholder:"ADDRESS"`
}

func (cmd userNamed) user(env *environment) string {
	if (cmd.Address == "") == (cmd.Email == "") {
		env.refusef("name the user by one address: as an argument or by --email")
	}
	return cmp.Or(cmd.Address, cmd.Email)
}

type userDisableCmd struct {
	userNamed
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run disables a user.
func (cmd userDisableCmd) Run(env *environment) error {
	user := cmd.user(env)
	return env.changeUser(cmd.JSON, "user.disable", user,
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.Disable(env.ctx, tx, user)
		})
}

type userPasswordCmd struct {
	userNamed
	MustChange bool `help:"Require a new password at the next sign-in."`
	JSON       bool `name:"json" help:"Print one JSON document."`
}

// Run sets a password.
func (cmd userPasswordCmd) Run(env *environment) error {
	user, password := cmd.user(env), env.readPassword()
	return env.changeUser(cmd.JSON, "user.password", user,
		func(s *app.Services, tx *postgres.Tx) (operator.User, error) {
			return s.Operators.SetPassword(env.ctx, tx, user, password, cmd.MustChange)
		})
}

// recordedUser is a user as the audit log keeps it.
type recordedUser struct {
	userJSON
	MustChange bool `json:"must_change_password"`
}

func newRecordedUser(user operator.User) recordedUser {
	return recordedUser{newUserJSON(user), user.MustChangePassword}
}

// changeUser changes the user with an address, or creates one, and prints the result.
func (env *environment) changeUser(
	asJSON bool, action, address string,
	use func(s *app.Services, tx *postgres.Tx) (operator.User, error),
) error {
	return env.change(asJSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		var before any
		if address != "" {
			found, err := operator.LockUser(env.ctx, tx, address)
			if err != nil {
				return done{}, err
			}
			before = newRecordedUser(found)
		}
		user, err := use(s, tx)
		printed, after := newUserJSON(user), newRecordedUser(user)
		made := did(changeEntry(action, user.Email, "", before, after),
			output{printed, aligned(func(w io.Writer) { printUser(w, user) })})
		if action == "user.disable" && before == any(after) {
			made.entries = nil // the user was disabled before
		}
		return made, err
	})
}

// readPassword prompts for a password without echo on a terminal, and otherwise reads the first
// line of the standard input.
func (env *environment) readPassword() string {
	if env.usageErr != nil {
		return ""
	}
	if file, ok := env.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(env.stderr, "Password: ")
		before, err := term.GetState(int(file.Fd()))
		var typed []byte
		if err == nil {
			typed, err = env.readInput(func() ([]byte, error) { return term.ReadPassword(int(file.Fd())) })
		}
		fmt.Fprintln(env.stderr)
		if err != nil {
			if before != nil { // or a terminal where the command was stopped shows nothing any more
				_ = term.Restore(int(file.Fd()), before)
			}
			env.refuse(fmt.Errorf("reading the password: %w", err))
		}
		return string(typed)
	}
	line, err := env.readInput(func() ([]byte, error) {
		return bufio.NewReader(io.LimitReader(env.stdin, 4096)).ReadBytes('\n')
	})
	if err != nil && !errors.Is(err, io.EOF) {
		env.refuse(fmt.Errorf("reading the password: %w", err))
	}
	password := strings.TrimRight(string(line), "\r\n")
	if password == "" {
		env.refusef("the password is missing: pass it on the standard input")
	}
	return password
}

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
	Action  string `help:"Only this action; one that ends with a dot matches all actions that begin with it." placeholder:"ACTION"`
	Subject string `help:"Only what was done to this subject." placeholder:"ID"`
	Since   string `help:"At or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until   string `help:"Before." placeholder:"TIME"`
	listFlags
}

// Run lists the audit log.
func (cmd auditListCmd) Run(env *environment) error {
	filter := operator.AuditFilter{
		Actor: cmd.Actor, Action: cmd.Action, Subject: cmd.Subject, Limit: cmd.Limit,
		Since: env.time("--since", cmd.Since), Until: env.time("--until", cmd.Until),
	}
	if cmd.Cursor != "" {
		var err error
		if filter.Before, err = strconv.ParseInt(cmd.Cursor, 10, 64); err != nil || filter.Before < 1 {
			env.refusef("--cursor is %q, which is not a cursor returned by a list", cmd.Cursor)
		}
	}
	return rowsOf("entries", newAuditJSON, "AT\tACTOR\tACTION\tSUBJECT\tREASON",
		func(w io.Writer, r operator.Record) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s %s\t%s\n", r.At.UTC().Format(time.RFC3339), r.Actor, r.Action,
				r.SubjectKind, r.Subject, r.Reason)
		}).pageBy(env, cmd.listFlags, func(s *app.Services) ([]operator.Record, string, error) {
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
