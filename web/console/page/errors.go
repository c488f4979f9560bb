package page

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// RenderError answers an error on any console path: with a page, or a notice for a
// fragment. The status follows from the error's code.
func (s *Site) RenderError(ctx echo.Context, err error) error {
	s.strictHeaders(ctx.Response().Header())
	status := s.Status(lending.ErrorCode(err))
	shown := ui.ErrorPageProps{
		Environment: s.Environment, Theme: s.Preference(ctx, "theme"), Status: status,
		Title: cmp.Or(errorTitles[status], "Something went wrong"), Text: ErrorText(err),
		RequestID: ctx.Response().Header().Get(echo.HeaderXRequestID),
	}
	if status == http.StatusInternalServerError && errors.Is(err, secret.ErrUnknownKey) {
		shown.Title = "A key is missing"
	}
	request := ctx.Request()
	if IsFragment(ctx) || isStream(request) {
		return Render(ctx, status, ui.ErrorFragment(shown))
	}
	if status >= http.StatusInternalServerError && request.Method == http.MethodGet {
		shown.RetryHref = request.URL.RequestURI()
	}
	if status == http.StatusServiceUnavailable || status == http.StatusUnauthorized {
		shown.Again = resubmission(ctx, status == http.StatusUnauthorized)
	}
	list, rest := listAbove(request.URL.Path)
	uid, _, deeper := strings.Cut(rest, "/")
	if _, err := uuid.Parse(uid); err == nil && deeper && status != http.StatusNotFound &&
		list.href == paths.Applications {
		list.href, list.label = paths.To(paths.Application, uid), "Back to the application"
	}
	shown.BackHref, shown.BackLabel = list.href, list.label
	if User(ctx).Email != "" && RequiredStep(SignedIn(ctx)) == "" {
		frame := s.errorFrame(ctx, Place{Section: list.section, Title: shown.Title}, status)
		shown.Frame = &frame
	}
	return Render(ctx, status, ui.ErrorPage(shown))
}

// secretFields are fields that no page repeats, with the labels that ask for them again.
var secretFields = map[string]string{
	"secret": "Secret or token", "header_value": "Value of a header",
	"candidate": "Value to compare", "password": "Password",
}

// resubmission returns the submitted form without its secrets. It is nil if no form was submitted,
// if nothing was typed, and for forms of the account, which are short and contain passwords.
func resubmission(ctx echo.Context, signIn bool) *ui.AgainForm {
	request := ctx.Request()
	err := request.ParseForm() // if there is no session, nobody has parsed it yet
	path := request.URL.Path
	if !IsSent(ctx) || err != nil || request.PostForm.Get(TokenField) == "" ||
		len(request.PostForm)-len(request.PostForm[userField]) == 1 ||
		strings.HasPrefix(path, paths.SignIn) || strings.HasPrefix(path, paths.Account) {
		return nil
	}
	form := ui.AgainForm{Action: request.URL.RequestURI(), SignIn: signIn}
	for _, name := range slices.Sorted(maps.Keys(request.PostForm)) {
		for i, value := range request.PostForm[name] {
			field := ui.AgainField{HiddenField: ui.HiddenField{Name: name, Value: value}}
			if value != "" && !isPlainHeader(request.PostForm, name, i) {
				field.Label = secretFields[name]
			}
			if field.Label != "" {
				field.Value = ""
			}
			form.Fields = append(form.Fields, field)
		}
	}
	return &form
}

// isPlainHeader reports whether a field is the value of a header that is not secret.
func isPlainHeader(form url.Values, name string, i int) bool {
	kinds := form["header_kind"]
	return name == "header_value" && i < len(kinds) && kinds[i] == "plain"
}

// errorFrame returns the frame of an error page for a signed-in user. It omits the counts
// if they cannot be read, because whatever broke the page may also break the counts.
func (s *Site) errorFrame(ctx echo.Context, place Place, status int) ui.Frame {
	if status < http.StatusInternalServerError {
		if frame, err := s.frameOf(ctx, place); err == nil {
			return frame
		}
	}
	return s.plainFrame(ctx, place)
}

// errorTitles are the titles of error pages by status.
var errorTitles = map[int]string{
	http.StatusNotFound:              "There is nothing here",
	http.StatusForbidden:             "You may not do this",
	http.StatusUnauthorized:          "You are signed out",
	http.StatusConflict:              "This cannot be done now",
	http.StatusTooManyRequests:       "Too often",
	http.StatusRequestEntityTooLarge: "The form is too large",
	http.StatusServiceUnavailable:    "The database does not answer",
	http.StatusMethodNotAllowed:      "The request is not valid",
	http.StatusBadRequest:            "The request is not valid",
}

// missingKey says what to do about a value whose key is missing.
const missingKey = "A secret that belongs here is encrypted with the key %s, which this server " +
	"does not have. Ask the person who runs it to add that key behind the first one of " +
	"DRAWBRIDGE_SECRETS_KEY and to restart. If the key is lost, delete the subscription and " +
	"create it again; what it sent is still in the list of deliveries."

// ErrorText returns what a user may see of an error.
func ErrorText(err error) string {
	if lending.ErrorCode(err) == lending.CodeUnavailable {
		return "Try again in a moment. If you changed something, check first whether it was done."
	}
	if refusal, ok := errors.AsType[*lending.Error](err); ok {
		return Sentence(refusal.Message)
	}
	if missing, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
		return fmt.Sprintf(missingKey, missing.ID)
	}
	return "This is our error and was logged. Try again; if it persists, report the request id."
}

// Sentence is ui.Sentence, for handlers.
var Sentence = ui.Sentence

// above is a list of the console and the pages below it.
type above struct {
	href, label string
	section     ui.Section
	// thing names an entry of the list, or what belongs to one; page is the path of its page.
	thing, page string
}

// lists are the lists that the pages of single things belong to.
var lists = []above{
	{paths.Applications, "All applications", ui.SectionApplications, "application", paths.Application},
	{paths.Deliveries, "All deliveries", ui.SectionDeliveries, "delivery", paths.Delivery},
	{paths.Events, "All events", ui.SectionEvents, "event", paths.Event},
	{paths.Bulks, "All bulk re-sends", ui.SectionBulks, "bulk re-send", paths.Bulk},
	{
		paths.Subscriptions, "All subscriptions", ui.SectionSubscriptions, "subscription",
		paths.Subscription,
	},
	{paths.Emails, "All e-mails", ui.SectionEmails, "e-mail", paths.Email},
	{paths.Partners, "All partners", ui.SectionPartners, "partner", paths.Partner},
	{paths.Partners, "All partners", ui.SectionPartners, "merchant", paths.Merchant},
	{paths.Partners, "All partners", ui.SectionPartners, "API client", paths.Client},
	{paths.Products, "All products", ui.SectionProducts, "product", paths.ProductActive},
	{paths.Lender, "All systems", ui.SectionSystems, "system", paths.LenderClient},
	{paths.Requests, "All API requests", ui.SectionRequests, "API request", paths.Request},
	{paths.People, "All people", ui.SectionPeople, "person", paths.Person},
	{paths.Alerts, "All that needs attention", ui.SectionAlerts, "item", paths.Alert},
}

// listAbove finds the list that a path belongs to, the zero value if there is none.
func listAbove(path string) (found above, rest string) {
	for _, list := range lists {
		prefix, _, _ := strings.Cut(list.page, ":")
		if below, under := strings.CutPrefix(path, prefix); under {
			return list, below
		}
	}
	return above{}, ""
}

// WithLabels replaces the API's field names in a refusal by the labels of a form, as written
// within a sentence. Any refusal of fields becomes a validation error: a form shows its
// details, and an error page the first of them.
func WithLabels(err error, names map[string]string) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || len(refusal.Details) == 0 {
		return err
	}
	copied := *refusal
	copied.Code, copied.Details = lending.CodeValidation, nil
	for _, detail := range refusal.Details {
		for field, name := range names {
			if field != detail.Field {
				name = strings.ToLower(name[:1]) + name[1:]
			}
			detail.Message = strings.ReplaceAll(detail.Message, `"`+field+`"`, name)
		}
		copied.Details = append(copied.Details, detail)
	}
	copied.Message = copied.Details[0].Message
	return &copied
}
