// Package people renders the console's users.
package people

import (
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// PersonRow is a user in the list.
type PersonRow struct {
	UID          string
	Email        string
	Name         string
	Role         string
	Disabled     bool
	SecondFactor bool
	// MustChange tells that the password is one that an admin gave out.
	MustChange bool
	LastSignIn time.Time
	Created    time.Time
}

// Word is the state of the user's access.
func (r PersonRow) chip() ui.ChipProps {
	switch {
	case r.Disabled:
		return ui.ChipProps{Icon: "ban", Word: "No access", Tone: ui.Mute}
	case r.LastSignIn.IsZero():
		return ui.ChipProps{Icon: "clock", Word: "Invited", Tone: ui.Calm}
	}
	return ui.ChipProps{Icon: "circle-check", Word: "Active", Tone: ui.Good}
}

// Filter is the list's filter as it was typed.
type Filter struct {
	Text   string
	Role   string
	Access string
	Faults map[string]string
}

func (f Filter) filtered() bool { return f.Text+f.Role+f.Access != "" }

func (f Filter) faults() []ui.FilterFault {
	return ui.FormFaultsOf(f.Faults, "role", "access", "cursor")
}

// People is the list of users.
type People struct {
	ui.Frame
	Rows    []PersonRow
	Filter  Filter
	Tabs    []ui.Tab
	Active  []ui.ActiveFilter
	Summary string
	Newest  string
	Older   string
}

func personTable(rows []PersonRow) ui.TableProps[PersonRow] {
	return ui.TableProps[PersonRow]{
		Caption: "People, by address", Rows: rows,
		RowID: func(r PersonRow) string { return "person-" + r.UID },
		Href:  func(r PersonRow) string { return paths.To(paths.Person, r.UID) },
		Columns: []ui.Column[PersonRow]{
			{Title: "Access", Class: "w-state", Cell: func(r PersonRow) templ.Component {
				return ui.Chip(r.chip())
			}},
			{Title: "Person", Header: true, Cell: personNameCell},
			{Title: "Role", Class: "col-a w-rate", Cell: personRoleCell},
			{Title: "Second factor", Class: "col-b w-state", Cell: personFactorCell},
			{Title: "Last sign-in", Class: "w-time end", Cell: func(r PersonRow) templ.Component {
				return ui.Time(r.LastSignIn)
			}},
		},
	}
}

// roleHint says what each role may do.
const roleHint = "Support can see everything except secrets, and can re-send. Operators can also " +
	"change subscriptions, applications and clients. Admins can also change people, products and " +
	"settings."

// roleOptions are the roles to choose from.
func roleOptions() []ui.Option {
	var options []ui.Option
	for _, role := range []string{"support", "operator", "admin"} {
		options = append(options, ui.Option{Value: role, Label: ui.RoleWord(role)})
	}
	return options
}

// PersonForm is the page that invites somebody.
type PersonForm struct {
	ui.Frame
	Email  string
	Name   string
	Role   string
	Faults map[string]string
}

func (p PersonForm) faults() []ui.FilterFault {
	return ui.FormFaultsOf(p.Faults, "email", "name", "role")
}

// Person is the page of one user.
type Person struct {
	ui.Frame
	PersonRow
	PasswordChanged time.Time
	PasswordExpires time.Time
	Provided        bool
	// Self tells that the viewer looks at their own account.
	Self     bool
	Sessions []ui.SessionView
	// AuditHref lists what was done to and by this user.
	AuditHref string
	DoneHref  string
}

// PasswordShown is the page that shows a one-time password, once.
type PasswordShown struct {
	ui.Frame
	UID      string
	Email    string
	Password string
	Expires  time.Time
}
