package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
)

// fillActions lists what an operator may do with an application now, and what
// each would cause.
func (c *Console) fillActions(
	ctx context.Context, page *applications.ApplicationPage, summary application.Summary,
	app application.Application,
) error {
	interests, err := c.Webhooks.Interests(ctx, summary.PartnerUID, summary.MerchantUID)
	if err != nil {
		return err
	}
	links := changeLinks{app: app, page: page, interests: interests}
	for _, group := range []applications.ActionGroup{
		links.statuses(), links.offers(), links.draws(), links.documents(), links.tasks(),
	} {
		if len(group.Actions) > 0 {
			page.Actions = append(page.Actions, group)
		}
	}
	return nil
}

// changeLinks makes the links to the changes of an application.
type changeLinks struct {
	app       application.Application
	page      *applications.ApplicationPage
	interests map[lending.EventKind]webhook.Interest
}

// to is a link to a change; pairs are the names and values of its query.
func (l changeLinks) to(
	label, change string, note []string, pairs ...string,
) applications.ActionLink {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	link := applications.ActionLink{
		Label: label, Note: strings.Join(note, " "),
		Href: paths.With(paths.To(paths.ApplicationChange, l.app.UID.String(), change), query),
	}
	return link
}

func (l changeLinks) tells(kind lending.EventKind) []string {
	return []string{tells(kind, l.interests)}
}

// statuses are the moves of the transition table, and no others.
func (l changeLinks) statuses() applications.ActionGroup {
	group := applications.ActionGroup{Title: "Move to"}
	for _, to := range l.app.Status.Next() {
		link := l.to(string(to), changeStatus, statusSays(l.app, to, l.interests), "to", string(to))
		link.Move = string(to)
		group.Actions = append(group.Actions, link)
	}
	return group
}

func (l changeLinks) offers() applications.ActionGroup {
	group := applications.ActionGroup{Title: "Decision and offer"}
	app := l.app
	if app.Status == lending.StatusPendingReview && !app.Decided {
		group.Actions = append(group.Actions, l.to("Run the decision", changeDecision,
			l.tells(lending.EventStatusUpdated)))
	}
	if !app.Status.IsFinal() && !app.LoanOpen && (len(app.Offers) > 0 || !app.Decided) {
		group.Actions = append(group.Actions, l.to("Accept an offer", changeAccept,
			[]string{"Sends no event."}))
	}
	now := state{app: app}
	if offer := lending.ReportedOffer(app.Offers, selectedUID(app)); offer != nil {
		if app.Status == lending.StatusApproved {
			group.Actions = append(group.Actions, l.to("Change the amount", changeAmount,
				l.tells(lending.EventAmountUpdated)))
		}
		if _, err := now.approval().ChangeTerms(lending.Terms{Term: &offer.Term}); err == nil {
			group.Actions = append(group.Actions, l.to("Change the terms", changeTerms,
				l.tells(lending.EventOfferUpdated)))
		}
	}
	return group
}

func (l changeLinks) draws() applications.ActionGroup {
	group := applications.ActionGroup{}
	if l.page.Loan == nil {
		return group
	}
	for _, draw := range l.page.Loan.Draws {
		id := fmt.Sprint(draw.ID)
		for _, to := range lending.FundingStatus(draw.Status).Next() {
			label, note := "Mark funding as processing", l.tells(lending.EventFundingChanged)
			switch to {
			case lending.FundingSettled:
				label, note = "Mark funding as settled", l.tells(lending.EventFundingSettled)
			case lending.FundingCancelled:
				label, note = "Cancel the draw", []string{"Sends no event."}
			case lending.FundingRequested, lending.FundingProcessing:
			}
			group.Title = "Draw #" + id
			group.Actions = append(group.Actions,
				l.to(label, changeFunding, note, "draw", id, "to", string(to)))
		}
	}
	return group
}

func (l changeLinks) documents() applications.ActionGroup {
	group := applications.ActionGroup{Title: "Loan documents"}
	for _, to := range l.app.Document.Next() {
		kind, label := lending.EventDocumentSent, "Mark as sent for signature"
		if to == lending.DocumentSigned {
			kind, label = lending.EventDocumentSigned, "Mark as signed"
		}
		group.Actions = append(group.Actions,
			l.to(label, changeDocument, l.tells(kind), "to", string(to)))
	}
	return group
}

func (l changeLinks) tasks() applications.ActionGroup {
	group := applications.ActionGroup{Title: "Tasks"}
	group.Actions = append(group.Actions,
		l.to("New task", changeNewTask, l.tells(lending.EventTaskCreated)))
	for _, task := range l.page.Tasks {
		for _, to := range lending.TaskStatus(task.Status).Next() {
			verb := "Complete"
			if to == lending.TaskCancelled {
				verb = "Cancel"
			}
			group.Actions = append(group.Actions, l.to(verb+" “"+clipped(task.Title)+"”", changeTask,
				l.tells(lending.EventTaskUpdated), "task", task.UID, "to", string(to)))
		}
	}
	return group
}

// clipped is a title that fits on a button.
func clipped(title string) string {
	const most = 40
	runes := []rune(title)
	if len(runes) <= most {
		return title
	}
	return string(runes[:most-1]) + "…"
}
