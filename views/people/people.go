// Package people renders the console's users.
package people

import (
	"time"

	"drawbridge/internal/operator"
	"drawbridge/views/ui"
)

// chip describes a user's access.
func chip(u operator.User) ui.ChipProps {
	switch {
	case u.DisabledAt != nil:
		return ui.ChipProps{Icon: "ban", Word: "No access", Tone: ui.Mute}
	case u.LastSignInAt == nil:
		return ui.ChipProps{Icon: "clock", Word: "Invited", Tone: ui.Calm}
	}
	return ui.ChipProps{Icon: "circle-check", Word: "Active", Tone: ui.Good}
}

// Table lists users.
func Table(rows []operator.User) ui.TableProps[operator.User] {
	return ui.TableProps[operator.User]{
		Caption: "People, by address", Rows: rows,
		RowID: func(u operator.User) string { return "person-" + u.UID.String() },
		Columns: []ui.Column[operator.User]{
			{Title: "Access", Class: "w-state", Chip: chip},
			{Title: "Person", Header: true, Cell: nameCell},
			ui.Texts("Role", "col-a w-rate",
				func(u operator.User) string { return ui.RoleWord(string(u.Role)) }),
			{Title: "Second factor", Class: "col-b w-state", Named: true, Cell: factorCell},
			ui.Times("Last sign-in", "w-time end",
				func(u operator.User) time.Time { return ui.Value(u.LastSignInAt) }).Titled(),
		},
	}
}

// RoleHint describes what each role may do.
const RoleHint = "Support can see everything except secrets, and can re-send. Operators can also " +
	"change subscriptions, applications and clients. Admins can also change people, products and " +
	"settings."

// RoleOptions are the roles to choose from.
func RoleOptions() []ui.Option {
	var options []ui.Option
	for _, role := range operator.Roles() {
		options = append(options, ui.Option{Value: string(role), Label: ui.RoleWord(string(role))})
	}
	return options
}
