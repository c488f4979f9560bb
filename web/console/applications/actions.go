package applications

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/web/console/action"
)

// actions are the changes of an application that are possible now, by what they are
// about. Each is asked for as its own form would be.
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
	add := func(group *applications.ActionGroup, name string, query url.Values) {
		action, addErr := c.action(name, query)
		if addErr != nil {
			err = addErr
		} else if action.Label != "" {
			group.Actions = append(group.Actions, action)
		}
	}
	var moves, offer, documents, tasks applications.ActionGroup
	var draws []applications.ActionGroup
	moves.Title, offer.Title, documents.Title = "Move to", "Decision and offer", "Loan documents"
	for _, to := range app.Status.Next() {
		add(&moves, "status", url.Values{"to": {string(to)}})
		moves.Actions[len(moves.Actions)-1].Move = string(to)
	}
	for _, name := range []string{"decision", "accept", "amount", "terms"} {
		add(&offer, name, nil)
	}
	if shown.Loan != nil {
		c.now.Loan = &shown.Loan.Loan
		for _, draw := range shown.Loan.History {
			id := fmt.Sprint(draw.ID)
			moved := applications.ActionGroup{Title: "Draw #" + id}
			for _, to := range draw.Status.Next() {
				add(&moved, "funding", url.Values{"draw": {id}, "to": {string(to)}})
			}
			draws = append(draws, moved)
		}
	}
	for _, to := range app.Document.Next() {
		add(&documents, "document", url.Values{"to": {string(to)}})
	}
	tasks.Title = "Tasks"
	add(&tasks, "task", nil)
	for _, task := range shown.Tasks {
		c.now.Task = task.Task
		for _, to := range task.Status.Next() {
			add(&tasks, "task-status", url.Values{
				"task": {task.UID.String()}, "to": {string(to)},
			})
		}
	}
	groups := append([]applications.ActionGroup{moves, offer}, draws...)
	for _, group := range append(groups, documents, tasks) {
		if len(group.Actions) > 0 {
			possible = append(possible, group)
		}
	}
	return possible, err
}

// action leads to a change, if it is possible now.
func (c changing) action(name string, query url.Values) (applications.Action, error) {
	c.get = query.Get
	confirmation, err := changes[name].confirm(c)
	if _, refused := errors.AsType[*lending.Error](err); refused || action.IsUnneeded(err) {
		return applications.Action{}, nil // what is refused or so already is not offered
	}
	if err != nil {
		return applications.Action{}, err
	}
	path := paths.To(paths.ApplicationChange, c.uid.String(), name)
	return applications.Action{
		Label: confirmation.button, Note: confirmation.note, Href: paths.With(path, query),
	}, nil
}
