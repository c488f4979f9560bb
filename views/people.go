package views

import (
	"time"

	"github.com/a-h/templ"
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
func (r PersonRow) chip() ChipProps {
	switch {
	case r.Disabled:
		return ChipProps{"ban", "No access", Mute}
	case r.LastSignIn.IsZero():
		return ChipProps{"clock", "Invited", Calm}
	}
	return ChipProps{"circle-check", "Active", Good}
}

// PeopleFilter is the list's filter as it was typed.
type PeopleFilter struct {
	Text   string
	Role   string
	Access string
	Faults map[string]string
}

func (f PeopleFilter) filtered() bool { return f.Text+f.Role+f.Access != "" }

func (f PeopleFilter) faults() []filterFault {
	return formFaultsOf(f.Faults, "role", "access", "cursor")
}

// People is the list of users.
type People struct {
	Frame
	Rows    []PersonRow
	Filter  PeopleFilter
	Tabs    []Tab
	Active  []ActiveFilter
	Summary string
	Newest  string
	Older   string
}

func personTable(rows []PersonRow) TableProps[PersonRow] {
	return TableProps[PersonRow]{
		Caption: "People, by address", Rows: rows,
		RowID: func(r PersonRow) string { return "person-" + r.UID },
		Href:  func(r PersonRow) string { return PersonPath(r.UID) },
		Columns: []Column[PersonRow]{
			{Title: "Access", Class: "w-state", Cell: func(r PersonRow) templ.Component {
				return Chip(r.chip())
			}},
			{Title: "Person", Header: true, Cell: personNameCell},
			{Title: "Role", Class: "col-a w-rate", Cell: personRoleCell},
			{Title: "Second factor", Class: "col-b w-state", Cell: personFactorCell},
			{Title: "Last sign-in", Class: "w-time end", Cell: func(r PersonRow) templ.Component {
				return Time(r.LastSignIn)
			}},
		},
	}
}

// RoleWord is what a role is called.
func RoleWord(role string) string { return capital(role) }

// roleHint says what each role may do.
const roleHint = "Support can see everything except secrets, and can re-send. Operators can also " +
	"change subscriptions, applications and clients. Admins can also change people, products and " +
	"settings."

// roleOptions are the roles to choose from.
func roleOptions() []Option {
	var options []Option
	for _, role := range []string{"support", "operator", "admin"} {
		options = append(options, Option{Value: role, Label: RoleWord(role)})
	}
	return options
}

// PersonForm is the page that invites somebody.
type PersonForm struct {
	Frame
	Email  string
	Name   string
	Role   string
	Faults map[string]string
}

func (p PersonForm) faults() []filterFault {
	return formFaultsOf(p.Faults, "email", "name", "role")
}

// Person is the page of one user.
type Person struct {
	Frame
	PersonRow
	PasswordChanged time.Time
	PasswordExpires time.Time
	Provided        bool
	// Self tells that the viewer looks at their own account.
	Self     bool
	Sessions []SessionView
	// AuditHref lists what was done to and by this user.
	AuditHref string
	DoneHref  string
}

// PasswordShown is the page that shows a one-time password, once.
type PasswordShown struct {
	Frame
	UID      string
	Email    string
	Password string
	Expires  time.Time
}
