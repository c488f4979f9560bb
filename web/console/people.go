package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/views/paths"
	"drawbridge/views/people"
	"drawbridge/views/ui"
)

// The values of the people filter's access.
const (
	accessEnabled  = "enabled"
	accessDisabled = "disabled"
)

// peopleRoutes lists the pages and actions about the console's users.
func (c *Console) peopleRoutes() []Route {
	const admin = operator.RoleAdmin
	post := func(path, name string, handler echo.HandlerFunc) Route {
		return Route{http.MethodPost, path, name, admin, c.proven(handler)}
	}
	return []Route{
		{http.MethodGet, paths.People, "console.people", admin, c.people},
		{
			// Asked before the form, so that nothing is typed twice.
			http.MethodGet, paths.PersonNew, "console.person.new", admin, c.proven(c.personNew),
		},
		post(paths.PersonNew, "console.person.invite", c.invite),
		{http.MethodGet, paths.Person, "console.person", admin, c.person},
		post(paths.PersonRole, "console.person.role", c.setRole),
		post(paths.PersonAccess, "console.person.access", c.setAccess),
		post(paths.PersonPassword, "console.person.password", c.resetPassword),
		post(paths.PersonFactor, "console.person.factor", c.resetFactor),
		post(paths.PersonSessions, "console.person.sessions.end", c.endSessions),
		post(paths.PersonSession, "console.person.session.end", c.endSession),
	}
}

// people lists the console's users.
func (c *Console) people(ctx echo.Context) error {
	filter, shown := readPeopleFilter(ctx.QueryParams())
	page := people.People{
		Filter: shown, Tabs: peopleTabs(shown), Active: activePeopleFilters(shown),
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillPeople(ctx, &page, filter); err != nil {
		return err
	}
	var err error
	page.Frame, err = c.frame(ctx, ui.SectionPeople, "People", ui.Crumb{Label: "People"})
	if err != nil {
		return err
	}
	page.Notice = c.takeNotice(ctx)
	return render(ctx, status, people.Page(page))
}

func (c *Console) fillPeople(
	ctx echo.Context, page *people.People, filter operator.UserFilter,
) error {
	request := ctx.Request().Context()
	users, more, err := c.Operators.Users(request, filter)
	if err != nil {
		return err
	}
	count, err := c.Operators.CountUsers(request, filter)
	if err != nil {
		return err
	}
	for _, user := range users {
		page.Rows = append(page.Rows, personRow(user))
	}
	page.Summary = counted(count, "person", "people")
	query := peopleQuery(page.Filter)
	if filter.After != "" {
		page.Newest = paths.With(paths.People, query)
	}
	if more {
		page.Older = paths.With(paths.People, with(query, "cursor", users[len(users)-1].Email))
	}
	return nil
}

func readPeopleFilter(query url.Values) (operator.UserFilter, people.Filter) {
	shown := people.Filter{
		Text: strings.TrimSpace(query.Get("q")), Role: query.Get("role"),
		Access: query.Get("access"), Faults: map[string]string{},
	}
	filter := operator.UserFilter{
		Text: shown.Text, Role: operator.Role(shown.Role), After: query.Get("cursor"),
		Limit: pageSize,
	}
	if shown.Role != "" && !slices.Contains(operator.Roles(), filter.Role) {
		shown.Faults["role"] = "There is no such role; choose one of the list."
	}
	switch shown.Access {
	case "":
	case accessEnabled, accessDisabled:
		disabled := shown.Access == accessDisabled
		filter.Disabled = &disabled
	default:
		shown.Faults["access"] = "There is no such view; choose one above."
	}
	return filter, shown
}

func peopleQuery(shown people.Filter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"q": shown.Text, "role": shown.Role, "access": shown.Access,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func peopleTabs(shown people.Filter) []ui.Tab {
	query := peopleQuery(shown)
	var tabs []ui.Tab
	for _, tab := range []struct{ label, access string }{
		{"All", ""}, {"With access", accessEnabled}, {"No access", accessDisabled},
	} {
		tabs = append(tabs, ui.Tab{
			Label: tab.label, Href: paths.With(paths.People, with(query, "access", tab.access)),
			Current: shown.Access == tab.access,
		})
	}
	return tabs
}

func activePeopleFilters(shown people.Filter) []ui.ActiveFilter {
	query := peopleQuery(shown)
	var active []ui.ActiveFilter
	for _, filter := range []struct{ name, label, value string }{
		{"q", "Begins with", shown.Text}, {"role", "Role", ui.RoleWord(shown.Role)},
	} {
		if filter.value != "" {
			active = append(active, ui.ActiveFilter{
				Label: filter.label + " " + filter.value,
				Href:  paths.With(paths.People, with(query, filter.name, "")),
			})
		}
	}
	return active
}

func personRow(user operator.User) people.PersonRow {
	return people.PersonRow{
		UID: user.UID.String(), Email: user.Email, Name: user.Name, Role: string(user.Role),
		Disabled: user.DisabledAt != nil, SecondFactor: user.SecondFactor,
		MustChange: user.MustChangePassword, LastSignIn: value(user.LastSignInAt),
		Created: user.CreatedAt,
	}
}

// personNew asks whom to invite.
func (c *Console) personNew(ctx echo.Context) error {
	return c.showPersonForm(ctx, http.StatusOK, people.PersonForm{Role: string(operator.RoleSupport)})
}

func (c *Console) showPersonForm(ctx echo.Context, status int, form people.PersonForm) error {
	var err error
	form.Frame, err = c.frame(ctx, ui.SectionPeople, "Invite somebody",
		ui.Crumb{Label: "People", Href: paths.People}, ui.Crumb{Label: "Invite somebody"})
	if err != nil {
		return err
	}
	form.Notice = c.takeNotice(ctx)
	return render(ctx, status, people.PersonNewPage(form))
}

// invite adds a user and shows their one-time password.
func (c *Console) invite(ctx echo.Context) error {
	form := people.PersonForm{
		Email: strings.TrimSpace(ctx.FormValue("email")),
		Name:  strings.TrimSpace(ctx.FormValue("name")), Role: ctx.FormValue("role"),
	}
	var user operator.User
	var password secret.String
	_, err := c.act(ctx, func(request context.Context, tx *postgres.Tx) (_ string, err error) {
		user, password, err = c.Operators.Invite(request, tx, operator.NewUser{
			Email: form.Email, Name: form.Name, Role: operator.Role(form.Role),
		})
		if err != nil {
			return "", err
		}
		return paths.To(paths.Person, user.UID.String()), c.auditUser(ctx, tx, "user.create", nil, &user)
	})
	if refusal, ok := errors.AsType[*lending.Error](err); ok && len(refusal.Details) > 0 {
		form.Faults = labelled(refusal.Details, map[string]string{
			"email": "the address", "name": "the name", "role": "the role",
		})
		return c.showPersonForm(ctx, http.StatusBadRequest, form)
	}
	if err != nil {
		return err
	}
	return c.showPassword(ctx, user, password)
}

// showPassword shows a one-time password, once: it is in no session and no log.
func (c *Console) showPassword(
	ctx echo.Context, user operator.User, password secret.String,
) error {
	frame, err := c.personFrame(ctx, user, "One-time password")
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, people.PasswordShownPage(people.PasswordShown{
		Frame: frame, UID: user.UID.String(), Email: user.Email, Password: password.Reveal(),
		Expires: value(user.PasswordExpiresAt),
	}))
}

// userState is how the audit log writes a user.
func userState(user *operator.User) any {
	if user == nil {
		return nil
	}
	return map[string]any{
		"name": user.Name, "role": user.Role, "disabled": user.DisabledAt != nil,
		"second_factor": user.SecondFactor, "must_change_password": user.MustChangePassword,
	}
}

// auditUser keeps a change of a user in the audit log.
func (c *Console) auditUser(
	ctx echo.Context, tx *postgres.Tx, action string, before, after *operator.User,
) error {
	return c.Operators.Audit(ctx.Request().Context(), tx, operator.Entry{
		Actor: currentUser(ctx).Email, Address: ctx.RealIP(), Action: action,
		SubjectKind: "user", Subject: after.Email,
		Before: userState(before), After: userState(after),
	})
}

// labelled says what is wrong with each field, in a form's words.
func labelled(details []lending.FieldFault, labels map[string]string) map[string]string {
	faults := make(map[string]string, len(details))
	for _, detail := range details {
		message := strings.ReplaceAll(detail.Message, `"`+detail.Field+`"`, labels[detail.Field])
		faults[detail.Field] = strings.TrimSpace(faults[detail.Field] + " " + sentence(message))
	}
	return faults
}

// userParam loads the user that the address names. Error: NOT_FOUND.
func (c *Console) userParam(ctx echo.Context) (operator.User, error) {
	uid, err := uuid.Parse(ctx.Param("uid"))
	if err != nil {
		return operator.User{}, lending.NewError(lending.CodeNotFound,
			"%q is no id of a user", ctx.Param("uid"))
	}
	return c.Operators.User(ctx.Request().Context(), uid)
}
