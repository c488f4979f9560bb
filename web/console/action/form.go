package action

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// Typed fills a form's controls with the submitted values.
func Typed(ctx echo.Context, form ui.Confirmation) ui.Confirmation {
	values, err := ctx.FormParams()
	if err != nil {
		return form // the guard has parsed the form already: this cannot fail
	}
	for i, control := range form.Controls {
		switch control.Kind {
		case ui.ControlChecks:
			form.Controls[i].Values = values[control.Name]
		case ui.ControlHeading:
		default:
			form.Controls[i].Value = values.Get(control.Name)
		}
	}
	form.Reason = values.Get("reason")
	return form
}

// carried gives hidden fields the values that were submitted, if any.
func carried(ctx echo.Context, fields []ui.HiddenField) []ui.HiddenField {
	values, err := ctx.FormParams()
	if err != nil {
		return fields // the guard has parsed the form already: this cannot fail
	}
	for i, field := range fields {
		if sent := values[field.Name]; len(sent) == 1 { // a list is the same in each form
			fields[i].Value = sent[0]
		}
	}
	return fields
}

// Refused puts the message of each refused field beside its control, with the form's
// labels. Messages without a control go above the form.
func Refused(form ui.Confirmation, refusal *lending.Error) ui.Confirmation {
	if worded, ok := errors.AsType[*lending.Error](page.WithLabels(refusal, labels(form))); ok {
		refusal = worded
	}
	rest := []string{}
	for _, detail := range refusal.Details {
		placed := false
		for i, control := range form.Controls {
			if control.Name != detail.Field || control.Kind == ui.ControlHeading {
				continue
			}
			form.Controls[i].Error = strings.TrimSpace(
				control.Error + " " + page.Sentence(detail.Message))
			placed = true
		}
		if !placed {
			rest = append(rest, page.Sentence(detail.Message))
		}
	}
	if len(refusal.Details) == 0 {
		rest = append(rest, page.Sentence(refusal.Message))
	}
	form.Error = strings.Join(rest, " ")
	return form
}

// SeenField is the hidden field that carries the state that a form showed.
const SeenField = "seen"

// Seen returns SeenField. The description's parts are separated by semicolons.
func Seen(description string) ui.HiddenField {
	return ui.HiddenField{Name: SeenField, Value: description}
}

// Stale refuses a form that showed an outdated state, and says what differs. Error:
// INVALID_STATE.
func Stale(seen, now string) error {
	was, is := strings.Split(seen, "; "), strings.Split(now, "; ")
	without := func(parts, others []string) string {
		only := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
			return slices.Contains(others, part)
		})
		return cmp.Or(strings.Join(only, "; "), "nothing")
	}
	return lending.NewError(lending.CodeInvalidState,
		"This changed while you were looking: it was %s and is %s now. "+
			"Look at it again before you decide", without(was, is), without(is, was))
}

// labels maps the names of a form's fields to their labels, as written within a sentence.
func labels(form ui.Confirmation) map[string]string {
	named := map[string]string{"reason": "the reason"}
	for _, control := range form.Controls {
		switch {
		case control.Kind == ui.ControlHeading:
		case control.Thing != "":
			named[control.Name] = control.Thing
		case control.Label != "":
			named[control.Name] = strings.ToLower(control.Label[:1]) + control.Label[1:]
		}
	}
	return named
}

// Renamed renames a field in a refusal, for forms that use another name than the service.
func Renamed(err error, from, to string) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		return err
	}
	copied := *refusal
	copied.Details = slices.Clone(refusal.Details)
	for i, detail := range copied.Details {
		if detail.Field == from {
			copied.Details[i].Field = to
			copied.Details[i].Message = strings.ReplaceAll(detail.Message, `"`+from+`"`, `"`+to+`"`)
		}
	}
	return &copied
}
