package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
)

// moveTo is the fixed value of a form that moves something to a status.
func moveTo(status string) []ui.HiddenField {
	return []ui.HiddenField{{Name: "to", Value: status}}
}

// chooseOne refuses an address that names no choice of a form, in the form's words.
func chooseOne(err error, choice string) error {
	return lending.NewError(lending.CodeValidation, "%s", choice).WithCause(err)
}

func statusChange(a asked) (appChange, error) {
	to, err := lending.ParseApplicationStatus(a.get("to"))
	if err != nil {
		return appChange{}, chooseOne(err, "Choose the status that it moves to")
	}
	app := a.now.app
	if app.Status == to {
		return appChange{}, notNow("The application is %s already", to)
	}
	if _, err := app.Status.Move(to); err != nil {
		return appChange{}, err
	}
	change := appChange{
		form: ui.AskForm{
			Title: "Move to " + string(to), Submit: "Move to " + string(to),
			Hidden: moveTo(string(to)), Danger: to.IsFinal(),
			Says: append([]string{fmt.Sprintf("From %s to %s.", app.Status, to)},
				statusSays(app, to, a.interests)...),
		},
		seen:   func(s state) string { return string(s.app.Status) },
		action: "application.status", after: map[string]any{"status": to},
		done: "Moved to " + string(to) + ".",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			_, err := a.Applications.Move(ctx, tx, by, a.uid, to)
			return err
		},
	}
	if to.IsFinal() {
		change.form.Risks = []string{string(to) + " is final: nothing follows it."}
	}
	return change, nil
}

func decisionChange(a asked) (appChange, error) {
	app := a.now.app
	if app.Status != lending.StatusPendingReview || app.Decided {
		return appChange{}, notNow("The decision runs once, in Pending Review; the application is %s",
			app.Status)
	}
	return appChange{
		form: ui.AskForm{
			Title: "Run the decision", Submit: "Run the decision",
			Says: []string{
				"Each active product may make an offer. With one the application goes to " +
					"Hard Pull Authorization, without any to Declined, which is final.",
				a.tells(lending.EventStatusUpdated),
				mails(app, "stipulation") + " Not if it is declined.",
			},
		},
		seen: func(s state) string {
			return fmt.Sprintf("%s, %s", s.app.Status, counted(len(s.app.Offers), "offer", "offers"))
		},
		action: "application.decide", done: "The decision has run.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			_, err := a.Applications.RunDecision(ctx, tx, by, a.uid)
			return err
		},
	}, nil
}

func acceptChange(a asked) (appChange, error) {
	app := a.now.app
	if app.Status.IsFinal() {
		return appChange{}, notNow("No offer can be accepted on an application that is %s", app.Status)
	}
	if app.LoanOpen {
		return appChange{}, notNow("The loan is open: another product cannot be selected any more")
	}
	options, err := a.acceptable()
	if err != nil {
		return appChange{}, err
	}
	product, linked := a.get("product"), a.get("linked")
	return appChange{
		form: ui.AskForm{
			Title: "Accept an offer", Submit: "Accept for the borrower", Says: a.acceptSays(),
			Controls: []ui.Control{
				{
					Kind: ui.ControlSelect, Name: "product", Label: "Product", Options: options,
					Value: product,
				},
				{
					Kind: ui.ControlArea, Name: "linked", Label: "Close these as well",
					Hint: "Ids of competing applications of the same merchant, one a line. Optional.",
				},
			},
		},
		seen: func(s state) string {
			if s.app.SelectedProductCode == "" {
				return string(s.app.Status) + " with nothing selected"
			}
			return string(s.app.Status) + " with " + s.app.SelectedProductCode + " selected"
		},
		action: "application.accept_offer",
		after:  map[string]any{"product_uid": product, "linked": strings.Fields(linked)},
		done:   "Accepted.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			acceptance, err := readAcceptance(a.uid, product, linked)
			if err != nil {
				return err
			}
			return a.Applications.AcceptOffer(ctx, tx, by, acceptance)
		},
	}, nil
}

// acceptable are the products to choose from: those that made an offer, or before
// the decision all that could.
func (a asked) acceptable() ([]ui.Option, error) {
	var options []ui.Option
	for _, offer := range a.now.app.Offers {
		options = append(options, ui.Option{
			Value: offer.ProductUID,
			Label: offer.ProductCode + ", " + ui.Amount(offer.ApprovedAmount) + " approved",
		})
	}
	if a.now.app.Decided {
		if len(options) == 0 {
			return nil, notNow("The decision made no offer that could be accepted")
		}
		return options, nil
	}
	products, err := a.Applications.ActiveProducts(a.ctx.Request().Context())
	for _, product := range products {
		options = append(options, ui.Option{
			Value: product.UID, Label: product.Code + ", before the decision",
		})
	}
	return options, err
}

func (a asked) acceptSays() []string {
	app := a.now.app
	says := []string{"Accepting sends no event."}
	if app.Communications == lending.CommunicationsPaused {
		says = append(says,
			"Communications are enabled, and the borrower gets the welcome e-mail at once.")
	} else {
		says = append(says, "The borrower has had the welcome e-mail and does not get it again.")
	}
	if app.Status == lending.StatusApproved {
		says = append(says, "The loan opens, since the application is Approved.")
	}
	return append(says, "Applications closed with it: for each, "+
		strings.ToLower(a.tells(lending.EventStatusUpdated)[:1])+
		a.tells(lending.EventStatusUpdated)[1:])
}

// readAcceptance reads what is accepted and what is closed with it.
func readAcceptance(uid uuid.UUID, product, linked string) (application.Acceptance, error) {
	acceptance := application.Acceptance{ApplicationUID: uid}
	var faults lending.Faults
	var err error
	if acceptance.ProductUID, err = uuid.Parse(product); err != nil {
		faults.Add("product", `"product" must be one of the list`)
	}
	for text := range strings.FieldsSeq(linked) {
		other, err := uuid.Parse(text)
		if err != nil {
			faults.Add("linked", `%.60q is not the id of an application`, text)
			continue
		}
		acceptance.Linked = append(acceptance.Linked, other)
	}
	return acceptance, faults.Err()
}

func documentChange(a asked) (appChange, error) {
	to, err := lending.ParseDocumentStatus(a.get("to"))
	if err != nil {
		return appChange{}, chooseOne(err, "Choose what to record: sent or signed")
	}
	if changed, err := a.now.app.Document.Move(to); err != nil || !changed {
		if err == nil {
			err = notNow("The documents are %s already", strings.ToLower(documentWord(to)))
		}
		return appChange{}, err
	}
	kind, word := lending.EventDocumentSent, "sent for signature"
	if to == lending.DocumentSigned {
		kind, word = lending.EventDocumentSigned, "signed by the borrower"
	}
	return appChange{
		form: ui.AskForm{
			Title: "Mark the documents as " + word, Submit: "Record it", Hidden: moveTo(string(to)),
			Says: []string{"Records that the loan documents were " + word + ".", a.tells(kind)},
		},
		seen:   func(s state) string { return strings.ToLower(documentWord(s.app.Document)) },
		action: "application.document", after: map[string]any{"document": to}, done: "Recorded.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			_, err := a.Applications.RecordDocument(ctx, tx, by, a.uid, to)
			return err
		},
	}, nil
}

func newTaskChange(a asked) (appChange, error) {
	title := a.get("title")
	return appChange{
		form: ui.AskForm{
			Title: "New task", Submit: "Create task",
			Says: []string{
				"Something that somebody must do for this application.",
				a.tells(lending.EventTaskCreated), mails(a.now.app, "task"),
			},
			Controls: []ui.Control{{
				Name: "title", Label: "Title", MaxLength: application.MaxLine, Required: true,
				Hint: "Partner and borrower read it.", Autocomplete: "off", Autofocus: true,
			}},
		},
		// A task rests on nothing; the form's token keeps it from being made twice.
		seen:   func(state) string { return "" },
		action: "task.create", after: map[string]any{"name": title}, done: "Task created.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			var faults lending.Faults
			title := faults.Name("title", title, application.MaxLine)
			if err := faults.Err(); err != nil {
				return err
			}
			_, err := a.Applications.AddTask(ctx, tx, by, a.uid, title)
			return err
		},
	}, nil
}

func taskChange(a asked) (appChange, error) {
	to, err := lending.ParseTaskStatus(a.get("to"))
	if err != nil {
		return appChange{}, chooseOne(err, "Choose what becomes of the task: completed or cancelled")
	}
	task := a.now.task
	if changed, err := task.Status.Move(to); err != nil || !changed {
		if err == nil {
			err = notNow("The task is %s already", strings.ToLower(string(to)))
		}
		return appChange{}, err
	}
	verb := "Complete"
	if to == lending.TaskCancelled {
		verb = "Cancel"
	}
	return appChange{
		form: ui.AskForm{
			Title: verb + " this task", Submit: verb + " the task", Danger: to == lending.TaskCancelled,
			Hidden: []ui.HiddenField{
				{Name: "to", Value: string(to)}, {Name: "task", Value: task.UID.String()},
			},
			Says: []string{"“" + task.Title + "”", a.tells(lending.EventTaskUpdated)},
		},
		seen:   func(s state) string { return string(s.task.Status) },
		action: "task.status", done: "Recorded.",
		after: map[string]any{"task_uid": task.UID, "status": to, "name": task.Title},
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			_, err := a.Applications.MoveTask(ctx, tx, by, task.UID, to)
			return err
		},
	}, nil
}

// fundingSays lists what the next status of a draw brings.
func (a asked) fundingSays(to lending.FundingStatus) []string {
	switch to {
	case lending.FundingProcessing:
		return []string{"Records that the transfer has begun.", a.tells(lending.EventFundingChanged)}
	case lending.FundingSettled:
		return []string{
			"Records that the money has arrived. The next draw may be requested then.",
			a.tells(lending.EventFundingSettled),
		}
	case lending.FundingCancelled, lending.FundingRequested:
	}
	return []string{
		"Its amount and its stage are free again; its number is not used another time.",
		"No event tells it to the partner: say so yourself.",
	}
}

func fundingChange(a asked) (appChange, error) {
	to, err := lending.ParseFundingStatus(a.get("to"))
	if err != nil {
		return appChange{}, chooseOne(err,
			"Choose what becomes of the draw: processing, settled or cancelled")
	}
	id, err := strconv.ParseInt(a.get("draw"), 10, 64)
	if err != nil || a.now.loan == nil {
		return appChange{}, lending.NewError(lending.CodeNotFound, "the loan has no such draw")
	}
	status := func(s state) string {
		if s.loan != nil {
			for _, draw := range s.loan.Disbursements {
				if draw.ID == id {
					return string(draw.Status)
				}
			}
		}
		return ""
	}
	if _, changed, err := a.now.loan.MoveDisbursement(id, to); err != nil || !changed {
		if err == nil {
			err = notNow("Draw #%d is %s already", id, strings.ToLower(ui.FundingChip(string(to)).Word))
		}
		return appChange{}, err
	}
	word := map[lending.FundingStatus]string{
		lending.FundingProcessing: "mark funding as processing",
		lending.FundingSettled:    "mark funding as settled",
		lending.FundingCancelled:  "cancel the draw",
	}[to]
	return appChange{
		form: ui.AskForm{
			Title: fmt.Sprintf("Draw #%d: %s", id, word),
			Submit: map[bool]string{true: "Cancel the draw", false: "Record it"}[to ==
				lending.FundingCancelled],
			Danger: to == lending.FundingCancelled, Says: a.fundingSays(to),
			Hidden: []ui.HiddenField{
				{Name: "to", Value: string(to)}, {Name: "draw", Value: strconv.FormatInt(id, 10)},
			},
		},
		seen: status, action: "draw.status", done: "Recorded.",
		after: map[string]any{"merchant_disbursement_id": id, "status": to},
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) error {
			_, err := a.Loans.MoveFunding(ctx, tx, by, id, to)
			return err
		},
	}, nil
}
