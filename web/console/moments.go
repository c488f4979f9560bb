package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/views/applications"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// wordOwn words what no event tells.
func wordOwn(shown *applications.MomentView, m application.Moment) {
	switch m.Name {
	case application.NameCreated:
		shown.Title = "Application created"
		shown.Text = sourceWord(lending.Source(m.State))
	case application.NameCertificate:
		shown.Title = "Completion certificate stored"
		shown.Text = ui.Plural(m.Count, "file", "files")
		shown.Href = "#certificate-" + m.ID
	case application.NameDraw:
		shown.Title = "Draw #" + m.ID + " requested"
		shown.Text = fmt.Sprintf("%s, %s gross, by %s", m.State, ui.Amount(*m.Amount), m.Party)
		shown.Href = "#draw-" + m.ID
	case application.NameCancelled:
		shown.Title = "Draw #" + m.ID + " cancelled"
		shown.Text = ui.Amount(*m.Amount) + " gross are available again; no event tells it"
		shown.Icon, shown.Tone, shown.Href = "ban", ui.Mute, "#draw-"+m.ID
	}
}

func wordDelivery(shown *applications.MomentView, m application.Moment) {
	chip := ui.DeliveryChip(m.State)
	shown.Title, shown.Href = "Delivery to "+ui.HostOf(m.Party), paths.To(paths.Delivery, m.ID)
	shown.Chip, shown.Tone = &chip, chip.Tone
	parts := []string{m.Name, m.Text}
	if m.Count > 0 {
		parts = append(parts, ui.Plural(m.Count, "attempt", "attempts"),
			ui.OutcomeWord(m.HTTPStatus, m.ErrorClass))
	}
	shown.Text = strings.Join(parts, " · ")
	if m.Again {
		shown.Tag = "re-send"
	}
}

// wordCall words what the partner asked and what it was answered.
func wordCall(shown *applications.MomentView, m application.Moment) {
	chip := ui.AnswerChip(m.HTTPStatus)
	shown.Title, shown.Href = m.Name+" "+operationOf(m.State), paths.To(paths.Request, m.ID)
	shown.Chip, shown.Tone = &chip, chip.Tone
	took := time.Duration(m.DurationUS) * time.Microsecond
	parts := []string{"by " + m.Party, ui.Duration(took)}
	if m.ErrorClass != "" {
		parts = append(parts, m.ErrorClass)
	}
	parts = append(parts, "request "+m.Text)
	if m.Note != "" {
		parts = append(parts, "key "+m.Note)
	}
	shown.Text = strings.Join(parts, " · ")
	if m.Again {
		shown.Tag = "repeated"
	}
}

// operationOf is the last word of a path, by which people know an operation.
func operationOf(path string) string {
	last := path[strings.LastIndex(path, "/")+1:]
	if _, err := uuid.Parse(last); err != nil {
		return last
	}
	before := strings.TrimSuffix(path, "/"+last)
	return before[strings.LastIndex(before, "/")+1:]
}

// wordAttempt words one attempt of a delivery.
func wordAttempt(shown *applications.MomentView, m application.Moment) {
	uid := m.ID[:strings.LastIndex(m.ID, "-")]
	shown.Title = fmt.Sprintf("Attempt %d at %s", m.Count, ui.HostOf(m.Party))
	shown.Href, shown.Icon = paths.To(paths.Delivery, uid)+fmt.Sprintf("#attempt-%d", m.Count), "zap"
	shown.Tone = ui.Good
	if m.ErrorClass != "" {
		shown.Tone = ui.Bad
	}
	took := time.Duration(m.DurationUS) * time.Microsecond
	shown.Text = m.Text + " · " + ui.OutcomeWord(m.HTTPStatus, m.ErrorClass) + " · " +
		ui.Duration(took)
}

// mailWords are what the kinds of mail to borrowers are called.
var mailWords = map[string]string{
	"welcome": "Welcome e-mail", "stipulation": "Stipulation e-mail", "task": "Task e-mail",
}

func wordEmail(shown *applications.MomentView, m application.Moment) {
	shown.Title = mailWords[m.Name]
	if shown.Title == "" {
		shown.Title = "E-mail " + m.Name
	}
	chip := emails.Chip(m.State, false)
	shown.Chip, shown.Href = &chip, paths.To(paths.Email, m.ID)
	shown.Text = "to " + m.Party
	if m.Text != "" {
		shown.Text += ": " + m.Text
	}
	if m.Again {
		shown.Tag = "re-send"
	}
}

// eventTitle names an event by its kind and the status that it carries.
func eventTitle(m application.Moment) string {
	kind := lending.EventKind(m.Name)
	if kind == lending.EventFundingChanged {
		return "Funding status changed: " + m.State // the kind's own title names both
	}
	return kind.Title() + ": " + m.State
}

// eventText picks from an event's payload what its title does not say. A
// payload that cannot be read is shown by its kind alone.
func eventText(m application.Moment) string {
	var payload struct {
		TaskTitle string `json:"task_title"`
		Data      struct {
			Approved *lending.OfferPayload `json:"approved_offer"`
			Previous *lending.OfferPayload `json:"previous_approved_offer"`
			Updated  *lending.OfferPayload `json:"updated_approved_offer"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Body, &payload); err != nil {
		return m.Name
	}
	switch before, after := payload.Data.Previous, payload.Data.Updated; {
	case payload.TaskTitle != "":
		return payload.TaskTitle
	case before != nil && after != nil:
		return strings.Join(differences(*before, *after), ", ")
	case payload.Data.Approved != nil:
		return "Approved amount " + grouped(payload.Data.Approved.ApprovedAmount)
	}
	return m.Name
}

// differences lists what changed between two offers.
func differences(before, after lending.OfferPayload) []string {
	var found []string
	for _, field := range []struct{ name, before, after string }{
		{"Approved amount", grouped(before.ApprovedAmount), grouped(after.ApprovedAmount)},
		{"Term", before.Term, after.Term},
		{"Interest rate", before.InterestRate, after.InterestRate},
		{"Merchant fee", before.MerchantFeePercentage, after.MerchantFeePercentage},
	} {
		if field.before != field.after {
			found = append(found, field.name+" "+field.before+" → "+field.after)
		}
	}
	return found
}

// grouped writes an amount of a payload as pages do; what is none stays.
func grouped(text string) string {
	amount, err := lending.ParseMoney(text)
	if err != nil {
		return text
	}
	return ui.Amount(amount)
}
