package subscriptions

import (
	"strings"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// headerID is the element id of a control that is named like "headers[2].value".
func headerID(name string) string {
	return strings.NewReplacer("headers[", "header-", "].value", "").Replace(name)
}

// testResult is the address of a test event's result.
func testResult(test delivery.Detail) string {
	return paths.To(paths.SubscriptionResult, test.SubscriptionUID.String(), test.UID.String())
}

// testDiagnosis explains the outcome of a test event.
func testDiagnosis(test delivery.Detail, state subscription.State) ui.Diagnosis {
	found := ui.DiagnosisOf(test, state)
	switch {
	case test.State == delivery.StateDelivered:
		found.Title = "The endpoint confirmed the test event"
	case found.Title == "":
		found = ui.Diagnosis{
			Tone: ui.Calm, Title: "On its way", Text: "A worker sends it in a moment.",
		}
	}
	return found
}
