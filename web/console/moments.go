package console

import (
	"encoding/json"
	"fmt"
	"strings"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/views"
)

// wordOwn words what no event tells.
func wordOwn(shown *views.MomentView, m application.Moment) {
	switch m.Name {
	case application.NameCreated:
		shown.Title = "Application created"
		shown.Text = sourceWord(lending.Source(m.State))
	case application.NameCertificate:
		shown.Title = "Completion certificate stored"
		shown.Text = counted(m.Count, "file", "files")
		shown.Href = "#certificate-" + m.ID
	case application.NameDraw:
		shown.Title = "Draw #" + m.ID + " requested"
		shown.Text = fmt.Sprintf("%s, %s gross, by %s", m.State, views.Amount(*m.Amount), m.Party)
		shown.Href = "#draw-" + m.ID
	case application.NameCancelled:
		shown.Title = "Draw #" + m.ID + " cancelled"
		shown.Text = views.Amount(*m.Amount) + " gross are available again; no event tells it"
		shown.Icon, shown.Tone, shown.Href = "ban", views.Mute, "#draw-"+m.ID
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return views.Number(n) + " " + many
}

func wordDelivery(shown *views.MomentView, m application.Moment) {
	chip := views.DeliveryChip(m.State)
	shown.Title, shown.Href = "Delivery to "+views.HostOf(m.Party), views.DeliveryPath(m.ID)
	shown.Chip, shown.Tone = &chip, chip.Tone
	parts := []string{m.Name, m.Text}
	if m.Count > 0 {
		parts = append(parts, counted(m.Count, "attempt", "attempts"),
			views.OutcomeWord(m.HTTPStatus, m.ErrorClass))
	}
	shown.Text = strings.Join(parts, " · ")
	if m.Again {
		shown.Tag = "re-send"
	}
}

// mailWords are what the kinds of mail to borrowers are called.
var mailWords = map[string]string{
	"welcome": "Welcome e-mail", "stipulation": "Stipulation e-mail", "task": "Task e-mail",
}

func wordEmail(shown *views.MomentView, m application.Moment) {
	shown.Title = mailWords[m.Name]
	if shown.Title == "" {
		shown.Title = "E-mail " + m.Name
	}
	chip := views.EmailChip(m.State, false)
	shown.Chip, shown.Href = &chip, views.EmailPath(m.ID)
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
	return views.Amount(amount)
}
