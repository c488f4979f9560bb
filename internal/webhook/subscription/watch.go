package subscription

import (
	"fmt"
	"strings"

	"drawbridge/internal/lending"
)

// OnFailingPause is the value of the column on_failing for a subscription that pauses.
const OnFailingPause = "pause"

// The bounds of the rules for failing.
const (
	minFailingMinutes = 5
	maxFailingMinutes = 30 * 24 * 60
	maxFailingEvents  = 10_000
	maxAlertEmail     = 254
)

// Watch holds the health rules of one subscription.
type Watch struct {
	// FailingMinutes and FailingEvents replace those of the settings, unless 0.
	FailingMinutes int `db:"failing_minutes" json:"failing_minutes"`
	FailingEvents  int `db:"failing_events" json:"failing_events"`
	// Pause pauses the subscription when it fails; otherwise sending continues.
	Pause bool `db:"pause" json:"pause"`
	// AlertEmail is notified of a change in addition to the operators; empty for none.
	AlertEmail string `db:"alert_email" json:"alert_email"`
}

// CheckFailing adds an error for each of the rules for failing that is out of bounds.
func CheckFailing(errs *lending.FieldErrors, minutes, events int) {
	if minutes < minFailingMinutes || minutes > maxFailingMinutes {
		errs.Add("failing_minutes", `"failing_minutes" must be from %d to %d`,
			minFailingMinutes, maxFailingMinutes)
	}
	if events < 1 || events > maxFailingEvents {
		errs.Add("failing_events", `"failing_events" must be from 1 to %d`, maxFailingEvents)
	}
}

// The phrases that versions store for a watch, in this order and joined by commas.
// Different releases must be able to read each other's.
const (
	watchPauses  = "pauses when it fails"
	watchMinutes = "fails after %d minutes"
	watchEvents  = "fails after %d events"
	watchAlerts  = "alerts "
)

// words describes how the rules differ from those common to all subscriptions.
func (w Watch) words() string {
	var words []string
	if w.Pause {
		words = append(words, watchPauses)
	}
	if w.FailingMinutes > 0 {
		words = append(words, fmt.Sprintf(watchMinutes, w.FailingMinutes))
	}
	if w.FailingEvents > 0 {
		words = append(words, fmt.Sprintf(watchEvents, w.FailingEvents))
	}
	if w.AlertEmail != "" {
		words = append(words, watchAlerts+w.AlertEmail)
	}
	return strings.Join(words, ", ")
}

// readWatch parses the result of words.
func readWatch(words string) (Watch, error) {
	var w Watch
	for left := words; left != ""; {
		if address, found := strings.CutPrefix(left, watchAlerts); found {
			w.AlertEmail = address // the last phrase: the address may contain a comma
			break
		}
		var word string
		word, left, _ = strings.Cut(left, ", ")
		switch {
		case word == watchPauses:
			w.Pause = true
		case scanned(word, watchMinutes, &w.FailingMinutes):
		case scanned(word, watchEvents, &w.FailingEvents):
		default:
			return Watch{}, fmt.Errorf("reading the health rules %q: %q means nothing", words, word)
		}
	}
	return w, nil
}

// scanned parses a number from a text of the given form.
func scanned(text, form string, number *int) bool {
	var found int
	if _, err := fmt.Sscanf(text, form, &found); err != nil || fmt.Sprintf(form, found) != text {
		return false
	}
	*number = found
	return true
}

// check adds an error for each wrong value.
func (w Watch) check(errs *lending.FieldErrors) {
	minutes, events := w.FailingMinutes, w.FailingEvents
	if minutes == 0 {
		minutes = minFailingMinutes
	}
	if events == 0 {
		events = 1
	}
	CheckFailing(errs, minutes, events)
	if len(w.AlertEmail) > maxAlertEmail {
		errs.Add("alert_email", `"alert_email" must have at most %d characters`, maxAlertEmail)
	}
}
