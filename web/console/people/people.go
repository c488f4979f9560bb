// Package people is the console's pages about its users: who may sign in, and what an admin
// may do about them.
package people

import (
	"context"

	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	"drawbridge/views/people"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct{ *list.Engine }

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const admin = operator.RoleAdmin
	routes := append(list.Routes(f.Engine, f.list()),
		page.Get(paths.Person, "console.person", admin, f.person),
		page.Post(paths.PersonRole, "console.person.role", admin, f.Reauthenticated(f.Post(f.setRole))),
		page.Post(paths.PersonAccess, "console.person.access", admin,
			f.Reauthenticated(f.Post(f.setAccess))),
		page.Post(paths.PersonPassword, "console.person.password", admin,
			f.Reauthenticated(f.resetPassword)),
		page.Post(paths.PersonFactor, "console.person.factor", admin,
			f.Reauthenticated(f.Post(f.resetFactor))),
		page.Post(paths.PersonSessions, "console.person.sessions.end", admin,
			f.Reauthenticated(f.Post(f.endSessions))),
		page.Post(paths.PersonSession, "console.person.session.end", admin,
			f.Reauthenticated(f.Post(f.endSessions))))
	return append(routes, f.Actions(f.invite())...)
}

var place = page.Place{Section: ui.SectionPeople, Title: "People"}

// The values of the filter by access.
const (
	accessEnabled  = "enabled"
	accessDisabled = "disabled"
)

// list lists who may sign in.
func (f *Feature) list() list.Spec[operator.User] {
	return list.Spec[operator.User]{
		Name: "console.people", Path: paths.People, Role: operator.RoleAdmin, Place: place,
		Intro: "Who may sign in to the console, and what each may do.",
		One:   "person", Many: "people", SummaryBelow: true,
		Tabs: list.Tabs{Name: "access", Options: []ui.Option{
			{Label: "All"},
			{Value: accessEnabled, Label: "With access"},
			{Value: accessDisabled, Label: "No access"},
		}},
		Filters: []list.Filter{
			{Name: "q", Label: "Name or address begins with", Chip: "Begins with ", Max: 200},
			{
				Name: "role", Label: "Role", Kind: list.Choice,
				Options: append([]ui.Option{{Label: "Every role"}}, people.RoleOptions()...),
			},
		},
		Read: func(v *list.Values) list.Source[operator.User] {
			filter := operator.UserFilter{
				Text: v.Text("q"), Role: list.OneOf(v, "role", operator.Roles()),
			}
			access := list.OneOf(v, "access", []string{accessEnabled, accessDisabled})
			if disabled := access == accessDisabled; access != "" {
				filter.Disabled = &disabled
			}
			return list.Source[operator.User]{
				Load: func(ctx context.Context, from string, limit int) ([]operator.User, string, error) {
					filter := filter // the count reads it concurrently
					filter.After, filter.Limit = from, limit
					users, more, err := f.Operators.Users(ctx, filter)
					if err != nil || !more {
						return users, "", err
					}
					return users, users[len(users)-1].Email, nil
				},
				Count: func(ctx context.Context, _ int) (int, error) {
					return f.Operators.CountUsers(ctx, filter)
				},
			}
		},
		CheckPlace: func(string) bool { return true }, // an address, which need not exist
		Table:      people.Table,
		NoMatch: ui.EmptyProps{
			Title: "Nobody matches these filters",
			Text:  "Remove a filter. A name or an address is matched by its beginning.",
		},
		Empty: ui.EmptyProps{
			Icon: "user", Title: "Nobody comes after this", Href: paths.People, Action: "See all people",
		},
		Buttons: people.InviteButton(),
	}
}
