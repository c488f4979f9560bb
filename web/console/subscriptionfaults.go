package console

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/subscriptions"
)

// formLabels are the fields of the subscription form by their names, as a
// sentence mentions them.
var formLabels = map[string]string{
	"url": "The URL", "partner": "The partner", "merchant": "The merchant", "event": "The event",
	"auth": "The authentication", "secret": "The secret", "reason": "The reason",
	"rate": "The rate", "alert_email": "The alert e-mail",
}

// formOrder is the order of the form's fields from the top down; headers come
// between secret and reason.
var formOrder = []string{
	"url", "partner", "merchant", "event", "auth", "secret", "headers", "rate", "alert_email",
	"reason",
	"test_event",
}

// checkForm finds what only the form can get wrong.
func checkForm(form subscriptions.SubscriptionForm) lending.Faults {
	var faults lending.Faults
	if form.IsNew() && form.PartnerName == "" {
		faults.Add("partner", "Choose the partner whose events are sent.")
	}
	if !form.AllMerchants && len(chosenMerchants(form)) == 0 {
		faults.Add("merchant", "Choose at least one merchant, or cover all of them.")
	}
	if !form.AllEvents && len(chosenEvents(form)) == 0 {
		faults.Add("event", "Choose at least one event, or send all of them.")
	}
	if form.Auth != "none" && form.SecretMode == secretPaste && form.Secret == "" {
		faults.Add("secret", "Type the secret that was agreed, or let one be generated.")
	}
	if _, err := strconv.Atoi(form.Rate); form.Rate != "" && err != nil {
		faults.Add("rate", "The rate is a whole number of requests a second, or empty for no limit.")
	}
	if form.AlertEmail != "" && email.CheckAddress(form.AlertEmail) != nil {
		faults.Add("alert_email", "Write the alert e-mail as ana@example.com, or leave it empty.")
	}
	return faults
}

// faultForm puts the refusal's faults at the fields of the form. rows are the rows
// of the headers that were checked. It returns false for another error.
func faultForm(
	form *subscriptions.SubscriptionForm, err error, rows []subscriptions.HeaderField,
) bool {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || len(refusal.Details) == 0 {
		return false
	}
	form.Faults = map[string]string{}
	for _, detail := range refusal.Details {
		field := formField(detail.Field, rows)
		text := detail.Message
		if label := formLabels[detail.Field]; label != "" {
			text = strings.ReplaceAll(text, `"`+detail.Field+`"`, label)
		}
		if form.Faults[field] == "" {
			form.FaultOrder = append(form.FaultOrder, field)
		}
		form.Faults[field] = strings.TrimSpace(form.Faults[field] + " " + sentence(text))
	}
	slices.SortStableFunc(form.FaultOrder, func(a, b string) int { return place(a) - place(b) })
	return true
}

// formField is the id of the control that a fault belongs to.
func formField(field string, rows []subscriptions.HeaderField) string {
	var index int
	var part string
	if _, err := fmt.Sscanf(field, "headers[%d].%s", &index, &part); err == nil &&
		index < len(rows) {
		return fmt.Sprintf("header-%d-%s", rows[index].Key, part)
	}
	if !slices.Contains(formOrder, field) {
		return "url"
	}
	return field
}

func place(field string) int {
	if strings.HasPrefix(field, "header-") {
		field = "headers"
	}
	return slices.Index(formOrder, field)
}
