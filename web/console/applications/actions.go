package applications

import (
	"context"
	"errors"
	"net/url"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/web/console/action"
)

// actions returns the changes of an application that are possible now, grouped by subject.
// Each is checked by building its form.
func (f *Feature) actions(
	ctx context.Context, shown applications.Page,
) (possible []applications.ActionGroup, err error) {
	app := shown.Application
	c := changing{
		Feature: f, uid: app.UID, now: &application.Standing{Application: app},
		products: func() ([]lending.Product, error) { return nil, nil },
	}
	c.interests, err = f.Webhooks.Subscriptions.Interests(ctx, shown.Summary.PartnerUID,
		shown.Summary.MerchantUID)
	if err != nil {
		return nil, err
	}
	add := func(title, name string, query url.Values) {
		action, addErr := c.action(name, query)
		switch last := len(possible) - 1; {
		case addErr != nil:
			err = addErr
		case action.Label == "":
		case last >= 0 && possible[last].Title == title:
			possible[last].Actions = append(possible[last].Actions, action)
		default:
			possible = append(possible, applications.ActionGroup{
				Title: title, Actions: []applications.Action{action},
			})
		}
	}
	var draws []loan.Disbursement
	if shown.Loan != nil {
		c.now.Loan, draws = &shown.Loan.Loan, shown.Loan.History
	}
	for _, to := range app.Status.Next() {
		add("Move to", "status", url.Values{"to": {string(to)}})
	}
	for _, name := range []string{"decision", "accept", "amount", "terms"} {
		add("Decision and offer", name, nil)
	}
	for _, draw := range draws {
		id := drawKey(draw)
		for _, to := range draw.Status.Next() {
			add("Draw #"+id, "funding", url.Values{"draw": {id}, "to": {string(to)}})
		}
	}
	for _, to := range app.Document.Next() {
		add("Loan documents", "document", url.Values{"to": {string(to)}})
	}
	add("Tasks", "task", nil)
	for _, task := range shown.Tasks {
		c.now.Task = task.Task
		for _, to := range task.Status.Next() {
			add("Tasks", "task-status", url.Values{"task": {task.UID.String()}, "to": {string(to)}})
		}
	}
	return possible, err
}

// action returns the link to a change, or the zero Action if the change is not possible now.
func (c changing) action(name string, query url.Values) (applications.Action, error) {
	c.get = query.Get
	confirmation, err := changes[name].confirm(c)
	if _, refused := errors.AsType[*lending.Error](err); refused || action.IsUnneeded(err) {
		return applications.Action{}, nil // do not offer what is refused or already so
	}
	if err != nil {
		return applications.Action{}, err
	}
	path := paths.To(paths.ApplicationChange, c.uid.String(), name)
	possible := applications.Action{
		Label: confirmation.button, Note: confirmation.note, Href: paths.With(path, query),
	}
	if name == "status" {
		possible.Move = query.Get("to")
	}
	return possible, nil
}
