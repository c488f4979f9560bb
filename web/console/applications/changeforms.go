package applications

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
)

func (c changing) confirmStatus() (changeForm, error) {
	to, err := lending.ParseApplicationStatus(c.get("to"))
	if err != nil {
		return changeForm{}, chooseOne(err, "Choose the status that it moves to")
	}
	if changed, err := c.now.Status.Move(to); err != nil || !changed {
		if err == nil {
			err = c.nothingToDo("The application is %s already", to)
		}
		return changeForm{}, err
	}
	effects := []string{c.tells(lending.EventStatusUpdated)}
	if to.NeedsStipulation() {
		effects = append(effects, c.mails("stipulation"))
	}
	if c.opening() != "" {
		effects = append(effects, "The loan opens: the selected product's offer becomes its amount.")
	}
	var risks []string
	if to.IsFinal() {
		risks = append(risks, string(to)+" is final: nothing follows it.")
	}
	if c.now.Loan != nil && to.IsFinal() { // its money moves on whatever becomes of the application
		for _, draw := range c.now.Loan.Disbursements {
			if draw.Status.IsPending() {
				risks = append(risks, fmt.Sprintf("Draw #%d of %s is under way (%s), and goes on.",
					draw.ID, ui.InCurrency(c.Currency, draw.Gross), drawWord(draw.Status)))
			}
		}
	}
	return changeForm{
		button: string(to), note: strings.Join(effects, " "),
		form: ui.Confirmation{
			Title: "Move to " + string(to), Submit: "Move to " + string(to), Danger: to.IsFinal(),
			Hidden: []ui.HiddenField{{Name: "to", Value: string(to)}}, Risks: risks,
			Effects: append([]string{fmt.Sprintf("From %s to %s.", c.now.Status, to)}, effects...),
		},
		after: map[string]any{"status": to}, done: "Moved to " + string(to) + ".",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			before := c.now.Status
			app, err := c.Applications.Move(ctx, tx, by, c.uid, to)
			return app.Status != before, err
		},
	}, nil
}

// drawWord is the state of a draw as written within a sentence.
func drawWord(state lending.FundingStatus) string {
	return strings.ToLower(applications.DrawWord(state))
}

// opening describes the loan that a move opens, empty if it opens none.
func (c changing) opening() string {
	to := lending.ApplicationStatus(c.get("to"))
	offer, due := lending.LoanToOpen(to, c.now.Offers, c.now.Selected())
	if !due || c.now.LoanOpen {
		return ""
	}
	return "; a loan of " + offer.ApprovedAmount.String() + " opens"
}

func (c changing) confirmDecision() (changeForm, error) {
	if c.now.Decided || c.now.Status.IsFinal() {
		return changeForm{}, notNow("The decision runs once, before the application ends; it is %s",
			c.now.Status)
	}
	note, effects := c.decides()
	return changeForm{
		button: "Run the decision", note: note,
		form: ui.Confirmation{
			Title: "Run the decision", Submit: "Run the decision", Effects: effects,
		},
		done: "The decision has run.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			_, err := c.Applications.RunDecision(ctx, tx, by, c.uid)
			return true, err // it has run, whatever the result
		},
	}, nil
}

// decides says what the results of the decision may be.
func (c changing) decides() (note string, effects []string) {
	const each = "Each active product may make an offer. "
	note = c.tells(lending.EventStatusUpdated)
	switch status := c.now.Status; {
	case status == lending.StatusPendingReview:
		return note, []string{
			each + "With one the application goes to Hard Pull Authorization, without any to " +
				"Declined, which is final.",
			note, c.mails("stipulation") + " Not if it is declined.",
		}
	case slices.Contains(status.Next(), lending.StatusDeclined):
		return "Sends no event, unless it declines.", []string{
			each + "With one the application stays " + string(status) + " and no event is sent, " +
				"without any it goes to Declined, which is final.",
			"If it is declined: " + note,
		}
	}
	note = "Sends no event."
	effects = []string{
		each + "The application stays " + string(c.now.Status) + ". Without an offer the decision " +
			"is refused, since the application cannot become Declined.", note,
	}
	if c.now.Status == lending.StatusApproved && c.now.Selected() != "" {
		effects = append(effects, "The loan opens if the selected product makes an offer.")
	}
	return note, effects
}

// documents describes the state of the loan documents.
func (c changing) documents() string {
	return strings.ToLower(applications.DocumentWord(c.now.Document))
}

func (c changing) confirmDocument() (changeForm, error) {
	to, err := lending.ParseDocumentStatus(c.get("to"))
	if err != nil {
		return changeForm{}, chooseOne(err, "Choose what to record: sent or signed")
	}
	if changed, err := c.now.Document.Move(to); err != nil || !changed {
		if err == nil {
			err = c.nothingToDo("The documents are %s already", c.documents())
		}
		return changeForm{}, err
	}
	event, word, button := lending.EventDocumentSent, "sent for signature", "sent for signature"
	if to == lending.DocumentSigned {
		event, word, button = lending.EventDocumentSigned, "signed by the borrower", "signed"
	}
	return changeForm{
		button: "Mark as " + button, note: c.tells(event),
		form: ui.Confirmation{
			Title: "Mark the documents as " + word, Submit: "Record it",
			Hidden:  []ui.HiddenField{{Name: "to", Value: string(to)}},
			Effects: []string{"Records that the loan documents were " + word + ".", c.tells(event)},
		},
		after: map[string]any{"document": to}, done: "Recorded.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			before := c.now.Document
			app, err := c.Applications.RecordDocument(ctx, tx, by, c.uid, to)
			return app.Document != before, err
		},
	}, nil
}

func (c changing) confirmTask() (changeForm, error) {
	title, event := c.get("title"), c.tells(lending.EventTaskCreated)
	return changeForm{
		button: "New task", note: event,
		form: ui.Confirmation{
			Title: "New task", Submit: "Create task",
			Effects: []string{
				"Something that somebody must do for this application.", event, c.mails("task"),
			},
			Controls: []ui.Control{{
				Name: "title", Label: "Title", MaxLength: application.MaxLine, Required: true,
				Hint: "Partner and borrower read it.", Autocomplete: "off", Autofocus: true,
			}},
		},
		after: map[string]any{"name": title}, done: "Task created.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			var errs lending.FieldErrors
			title := errs.Name("title", title, application.MaxLine)
			if err := errs.Err(); err != nil {
				return false, err
			}
			_, err := c.Applications.AddTask(ctx, tx, by, c.uid, title)
			return true, err
		},
	}, nil
}

func (c changing) confirmTaskStatus() (changeForm, error) {
	to, err := lending.ParseTaskStatus(c.get("to"))
	if err != nil {
		return changeForm{}, chooseOne(err, "Choose what becomes of the task: completed or cancelled")
	}
	task := c.now.Task
	if changed, err := task.Status.Move(to); err != nil || !changed {
		if err == nil {
			err = c.nothingToDo("The task is %s already", strings.ToLower(string(to)))
		}
		return changeForm{}, err
	}
	verb := ui.If(to == lending.TaskCancelled, "Cancel", "Complete")
	short, event := task.Title, c.tells(lending.EventTaskUpdated)
	if runes := []rune(short); len(runes) > 40 { // what fits on a button
		short = string(runes[:39]) + "…"
	}
	return changeForm{
		button: verb + " “" + short + "”", note: event,
		form: ui.Confirmation{
			Title: verb + " this task", Submit: verb + " the task", Danger: to == lending.TaskCancelled,
			Hidden: []ui.HiddenField{
				{Name: "to", Value: string(to)}, {Name: "task", Value: task.UID.String()},
			},
			Effects: []string{"“" + task.Title + "”", event},
		},
		after: map[string]any{"task_uid": task.UID, "status": to, "name": task.Title},
		done:  "Recorded.",
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			_, changed, err := c.Applications.MoveTask(ctx, tx, by, task.UID, to)
			return changed, err
		},
	}, nil
}

// fundings describes the changes of a draw's funding, by the new status: the title, the
// effect, and the event.
var fundings = map[lending.FundingStatus]struct {
	title, effect string
	event         lending.EventKind
}{
	lending.FundingProcessing: {
		"mark funding as processing", "Records that the transfer has begun.",
		lending.EventFundingChanged,
	},
	lending.FundingSettled: {
		"mark funding as settled",
		"Records that the money has arrived. The next draw may be requested then.",
		lending.EventFundingSettled,
	},
	lending.FundingCancelled: {
		"cancel the draw",
		"Its amount and its stage are free again; its number is not used again.",
		lending.EventFundingCancelled,
	},
	lending.FundingReturned: {
		"note the return of the money",
		"Records that the settled money came back. Its amount and its stage are free again; its " +
			"number is not used again.",
		lending.EventFundingReturned,
	},
}

func (c changing) confirmFunding() (changeForm, error) {
	to, err := lending.ParseFundingStatus(c.get("to"))
	if err != nil {
		return changeForm{}, chooseOne(err,
			"Choose what becomes of the draw: processing, settled, cancelled or returned")
	}
	id, err := strconv.ParseInt(c.get("draw"), 10, 64)
	if err != nil || c.now.Loan == nil {
		return changeForm{}, lending.NewError(lending.CodeNotFound, "the loan has no such draw")
	}
	fields, after := make(map[string]string), map[string]any{
		"merchant_disbursement_id": id, "status": to,
	}
	for _, field := range lending.FundingFields() {
		// If the money moves, the form's reason is for the audit log only; partners read the evidence.
		private := field == lending.FieldReason && to.InForce()
		if text := c.get(field); text != "" && !private {
			fields[field], after[field] = text, text
		}
	}
	_, changed, err := c.now.Loan.MoveDisbursement(id, to)
	if err != nil {
		return changeForm{}, err
	}
	var overtaken error
	if !changed {
		if overtaken, err = c.fundedOtherwise(id, to, fields); err != nil {
			return changeForm{}, err
		}
		if overtaken == nil {
			return changeForm{}, c.nothingToDo("Draw #%d is %s already", id, drawWord(to))
		}
	}
	words, tells, submit := fundings[to], c.tells(fundings[to].event), "Record it"
	if to == lending.FundingCancelled {
		submit = "Cancel the draw"
	}
	return changeForm{
		button: ui.Capital(words.title), note: tells, overtaken: overtaken,
		form: ui.Confirmation{
			Title: fmt.Sprintf("Draw #%d: %s", id, words.title), Submit: submit,
			Danger: !to.InForce(), NoReason: !to.InForce(),
			Effects: []string{words.effect, tells}, Controls: evidenceControls(to),
			Hidden: []ui.HiddenField{
				{Name: "to", Value: string(to)}, {Name: "draw", Value: strconv.FormatInt(id, 10)},
			},
		},
		after: after, done: fmt.Sprintf("Draw #%d is %s.", id, drawWord(to)),
		do: func(ctx context.Context, tx *postgres.Tx, by application.Caller) (bool, error) {
			change, err := lending.ParseFundingChange(to, fields, tx.Now)
			if err != nil {
				return false, err
			}
			change.NeedsReason = true
			_, changed, err := c.Loans.MoveFunding(ctx, tx, by, id, change)
			return changed, err
		},
	}, nil
}

// fundedOtherwise refuses a submitted form for a draw that already has the status, unless
// the form's values are those that were recorded: somebody else moved the money meanwhile,
// and the values typed here would be lost.
func (c changing) fundedOtherwise(
	id int64, to lending.FundingStatus, fields map[string]string,
) (overtaken, err error) {
	if !c.sent {
		return nil, nil
	}
	draw, err := c.draw(id)
	if err != nil {
		return nil, err
	}
	made := draw.Newest()
	if fields[lending.FieldReference] == ui.Value(made.Reference) &&
		fields[lending.FieldMethod] == ui.Value(made.Method) &&
		fields[lending.FieldEffectiveDate] == ui.Value(made.EffectiveDate) &&
		(to.InForce() || fields[lending.FieldReason] == ui.Value(made.Reason)) {
		return nil, nil
	}
	with := "without a reference"
	if made.Reference != nil {
		with = "with the reference " + *made.Reference
	}
	return notNow("Draw #%d is %s already: %s recorded that at %s, %s. What you typed here was not "+
		"recorded", id, drawWord(to), cmp.Or(made.By, "somebody"), c.clock(made.At), with), nil
}

// evidenceControls ask for the evidence of a change: the payment if money moved, the reason
// if it stays or comes back.
func evidenceControls(to lending.FundingStatus) []ui.Control {
	var controls []ui.Control
	if !to.InForce() {
		controls = append(controls, ui.Control{
			Name: lending.FieldReason, Label: "Reason", MaxLength: lending.MaxReason, Required: true,
			Hint: "The partner reads it.", Autocomplete: "off", Autofocus: true,
		})
	}
	if to == lending.FundingCancelled {
		return controls
	}
	return append(controls,
		ui.Control{
			Name: lending.FieldReference, Label: "Reference", MaxLength: lending.MaxReference,
			Hint: "The payment's number at the bank. Optional.", Autocomplete: "off",
		},
		ui.Control{
			Kind: ui.ControlSelect, Name: lending.FieldMethod, Label: "Method",
			Options: list.Options("Not given", lending.FundingMethods(), nil),
		},
		ui.Control{
			Name: lending.FieldEffectiveDate, Label: "Effective date", Type: "date",
			Hint: "The day on which the money moved. Optional.",
		})
}
