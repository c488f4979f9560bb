package emails

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// resend creates a new e-mail with the same text.
func (f *Feature) resend() action.Spec {
	return action.Spec{
		Path: paths.EmailResend, Shown: "console.email.resend", Sent: "console.email.resend.submit",
		Role: operator.RoleSupport,
		Confirm: func(ctx echo.Context) (action.Form, error) {
			found, err := f.named(ctx)
			if err == nil {
				err = found.CheckResend()
			}
			if err != nil {
				return action.Form{}, err
			}
			uid, user := found.EmailUID, page.User(ctx).Email
			seen := cmp.Or(ctx.FormValue(action.SeenField), resentWords(len(found.Resends)))
			reason := strings.TrimSpace(ctx.FormValue("reason"))
			at := place.Under(paths.Emails, emails.Title(found.Email)).
				Under(paths.To(paths.Email, uid.String()), "Re-send this e-mail")
			at.Here = "Re-send"
			return action.Form{
				Place: at, Fields: resendForm(ctx.Request().Context(), found),
				Change: action.Change{
					Done: "Re-sent. This is the new e-mail.",
					Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
						if err := notResentSince(ctx, tx, seen, uid); err != nil {
							return operator.Outcome{}, err
						}
						made, err := f.Emails.Resend(ctx, tx, uid, user, reason)
						return operator.Did(paths.To(paths.Email, made.String()), resendEntry(uid, made)), err
					},
				},
			}, nil
		},
	}
}

// resentWords says how often something was re-sent.
func resentWords(times int) string { return "re-sent " + ui.Plural(times, "time", "times") }

// notResentSince refuses a re-send if there was another since the form was shown.
func notResentSince(ctx context.Context, tx *postgres.Tx, seen string, uids ...uuid.UUID) error {
	count, err := email.LockResends(ctx, tx, uids...)
	if now := resentWords(count); err == nil && now != seen {
		err = action.Stale(seen, now)
	}
	return err
}

func resendEntry(original, made uuid.UUID) operator.Entry {
	return operator.NewEntry("email.resend", original.String(), nil, map[string]any{"email_uid": made})
}

// resendForm says what a re-send would do, and what speaks against it.
func resendForm(ctx context.Context, e email.Detail) ui.Confirmation {
	form := ui.Confirmation{
		Title: "Re-send this e-mail", About: e.ToAddress, Submit: "Re-send",
		Action: paths.To(paths.EmailResend, e.EmailUID.String()),
		Cancel: paths.To(paths.Email, e.EmailUID.String()),
		Effects: []string{"Sends the e-mail " + ui.EmailKind(e.Kind) +
			" once more: the same text, as an e-mail of its own with a new message id."},
		Hidden: []ui.HiddenField{action.Seen(resentWords(len(e.Resends)))},
	}
	switch {
	case e.MadeGoodBy.Valid:
		form.Risks = []string{"It was made good by a re-send already: the recipient gets it twice."}
	case e.OutcomeUnknown:
		form.Risks = []string{"The outcome of the last attempt is unknown: it may have arrived already."}
	case e.MayHaveArrived():
		form.Risks = []string{"It may have been sent before the database was restored from a backup."}
	case e.State == email.StateSent:
		form.Risks = []string{
			"The mail server has accepted this e-mail already: the recipient gets it twice.",
		}
	case e.State == email.StateCaptured:
		form.Risks = []string{"A sandbox sends borrowers nothing: the re-send is captured too."}
	case e.State == email.StateNotSent:
		form.Risks = []string{
			"As long as no mail server is configured, the re-send is not sent either.",
		}
	}
	if times := len(e.Resends); times > 0 {
		last := e.Resends[times-1]
		form.Risks = append(form.Risks, ui.Capital(resentWords(times))+" already, last by "+
			last.ResentBy+" at "+ui.Absolute(ctx, last.CreatedAt)+".")
	}
	return form
}

// maxResent bounds the e-mails that one form re-sends.
const maxResent = 500

// resendMany asks for confirmation with the consequences, and then re-sends the chosen e-mails.
func (f *Feature) resendMany(ctx echo.Context) error {
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		query = nil
	}
	back := paths.With(paths.Emails, query)
	uids, matched, err := f.chosen(ctx, query)
	if err != nil {
		return err
	}
	if len(uids) == 0 {
		f.LeaveNotice(ctx, cmp.Or(matched, "Tick the e-mails to re-send first: none was ticked."))
		return ctx.Redirect(http.StatusSeeOther, back)
	}
	chosen, err := email.Choose(ctx.Request().Context(), f.DB, uids)
	if err != nil {
		return err
	}
	fields, uids := resendManyForm(matched, chosen)
	fields.Cancel = back
	fields.Hidden = append(fields.Hidden, ui.HiddenField{Name: "filter", Value: query.Encode()})
	if len(uids) == 0 {
		return lending.NewError(lending.CodeInvalidState,
			"None of the chosen e-mails can be re-sent: they are still being sent, were held back, or "+
				"have no text any more.")
	}
	before, err := email.CountResends(ctx.Request().Context(), f.DB, uids...)
	if err != nil {
		return err
	}
	send := f.sending(ctx, &fields, before)
	user, reason := page.User(ctx).Email, strings.TrimSpace(ctx.FormValue("reason"))
	form := action.Form{Place: place.Under(back, fields.Title), Fields: fields, Change: action.Change{
		Done: "Re-sent: " + ui.Plural(len(uids), "e-mail", "e-mails") + ".",
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			if reason == "" {
				return operator.Outcome{}, lending.Invalid("reason",
					"say why these e-mails are re-sent; the reason is kept in the audit log")
			}
			resent, err := send(ctx, tx, uids, user, reason)
			return resentOutcome(back, resent, len(uids), err)
		},
	}}
	if ctx.FormValue("confirmed") == "" {
		return f.ShowForm(ctx, http.StatusOK, form)
	}
	return f.Submit(ctx, form)
}

// sending returns how a form re-sends its e-mails, and adds to the form that they were
// re-sent `before` times.
func (f *Feature) sending(ctx echo.Context, form *ui.Confirmation, before int) func(
	context.Context, *postgres.Tx, []uuid.UUID, string, string,
) ([]email.Resent, error) {
	if before > 0 {
		form.Risks = append(form.Risks, ui.Capital(resentWords(before))+" already, together.")
	}
	form.Hidden = append(form.Hidden, action.Seen(resentWords(before)))
	if ctx.FormValue("all") != "" || ctx.FormValue("found") != "" {
		// Another user may ask to re-send the same e-mails.
		form.Hidden = append(form.Hidden, ui.HiddenField{Name: "found", Value: "yes"})
		return f.Emails.ResendFound
	}
	seen := cmp.Or(ctx.FormValue(action.SeenField), resentWords(before))
	return func(
		ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, actor, reason string,
	) ([]email.Resent, error) {
		if err := notResentSince(ctx, tx, seen, uids...); err != nil {
			return nil, err
		}
		return f.Emails.ResendAll(ctx, tx, uids, actor, reason)
	}
}

// resentOutcome is the outcome of a re-send of many e-mails: of all of them, or of none.
func resentOutcome(
	back string, resent []email.Resent, asked int, err error,
) (operator.Outcome, error) {
	if err == nil && len(resent) < asked {
		err = lending.NewError(lending.CodeInvalidState,
			"Some of these e-mails were re-sent meanwhile, or have no text any more. "+
				"Go back to the list for what is left.")
	}
	outcome := operator.Outcome{Target: back}
	for _, one := range resent {
		outcome.Entries = append(outcome.Entries, resendEntry(one.Original, one.Made))
	}
	return outcome, err
}

// chosen reads the selected rows, or finds all that match the filter and says how many
// match and why some are left out.
func (f *Feature) chosen(
	ctx echo.Context, query url.Values,
) (uids []uuid.UUID, matched string, err error) {
	if ctx.FormValue("all") == "" {
		uids, err = page.Ticked(ctx, "email", maxResent, "e-mails", "an e-mail")
		return uids, "", err
	}
	v, err := list.Matching(ctx, f.Engine, f.list(), query)
	if err != nil {
		return nil, "", err
	}
	filter, request := readFilter(v), ctx.Request().Context()
	if uids, err = email.FindResendable(request, f.DB, filter, maxResent); err != nil {
		return nil, "", err
	}
	matching, left, err := email.CountLeftOut(request, f.DB, filter, maxMatching)
	if err != nil {
		return nil, "", err
	}
	return uids, matchedWords(f.inWords(v), matching, left), nil
}

// inWords describes a filter in the words of its chips.
func (f *Feature) inWords(v *list.Values) string {
	var words []string
	spec := f.list()
	for _, filter := range append([]list.Filter{{
		Name: spec.Tabs.Name, Chip: "State ", Options: spec.Tabs.Options,
	}}, spec.Filters...) {
		value := v.Text(filter.Name)
		if value == "" {
			continue
		}
		for _, option := range filter.Options {
			if option.Value == value {
				value = option.Label
			}
		}
		words = append(words, cmp.Or(filter.Chip, filter.Label+" ")+value)
	}
	if len(words) == 0 {
		return "(all e-mails, no filter)"
	}
	return "“" + strings.Join(words, " · ") + "”"
}

// maxMatching bounds the count of e-mails that match a filter.
const maxMatching = 10_000

// leftOutWords follow a count such as "3 ", in this order.
var leftOutWords = []struct {
	why  email.LeftOut
	word string
}{
	{email.LeftOutQueued, "still being sent"},
	{email.LeftOutSuppressed, "held back"},
	{email.LeftOutCaptured, "captured by a sandbox"},
	{email.LeftOutSent, "accepted by the mail server already"},
	{email.LeftOutResent, "re-sent already"},
	{email.LeftOutUnknown, "with an unknown outcome"},
	{email.LeftOutRemoved, "without a text any more"},
}

// matchedWords says how many e-mails match a filter, how many of them are left out, and why.
func matchedWords(filter string, matching int, left map[email.LeftOut]int) string {
	if matching == 0 {
		return "No e-mail matches " + filter + ", so there is none to re-send."
	}
	which := ui.Plural(matching, "e-mail matches ", "e-mails match ") + filter
	if matching == maxMatching {
		which = "Of the newest " + ui.Number(matching) + " e-mails that match " + filter
	}
	out, reasons := 0, []string{}
	for _, one := range leftOutWords {
		if count := left[one.why]; count > 0 {
			out += count
			reasons = append(reasons, ui.Number(count)+" "+one.word)
		}
	}
	switch out {
	case 0:
		return which + "; none is left out."
	case matching:
		return which + "; none can be re-sent: " + strings.Join(reasons, ", ") + "."
	}
	return which + "; " + ui.Number(out) + " left out: " + strings.Join(reasons, ", ") + "."
}

// resendManyForm asks about those of the chosen e-mails that can be re-sent, and returns
// their ids. It begins with matched, which is empty if the e-mails were ticked.
func resendManyForm(matched string, chosen []email.Email) (ui.Confirmation, []uuid.UUID) {
	form := ui.Confirmation{
		Title: "Re-send e-mails", Action: paths.EmailsResend, MustReason: true,
		Hidden: []ui.HiddenField{{Name: "confirmed", Value: "yes"}},
	}
	var uids []uuid.UUID
	var sent, unknown, good int
	for _, e := range chosen {
		if e.CheckResend() != nil {
			continue
		}
		uids = append(uids, e.EmailUID)
		form.Hidden = append(form.Hidden, ui.HiddenField{Name: "email", Value: e.EmailUID.String()})
		switch {
		case e.MadeGoodBy.Valid:
			good++
		case e.MayHaveArrived():
			unknown++
		case e.State == email.StateSent:
			sent++
		}
	}
	what := ui.Plural(len(uids), "e-mail", "e-mails")
	form.Submit = "Re-send " + what
	form.Effects = []string{strings.TrimSpace(matched + " This sends " + what +
		" once more, each to its recipient with the same text, as an e-mail of its own.")}
	if sent+unknown+good == 0 {
		form.Effects = append(form.Effects, "The mail server has accepted none of them before.")
	}
	if left := len(chosen) - len(uids); left > 0 {
		form.Effects = append(form.Effects, ui.Plural(left, "chosen e-mail is", "chosen e-mails are")+
			" left out: still being sent, held back, or without a text.")
	}
	if len(chosen) == maxResent {
		form.Effects = append(form.Effects,
			"These are the oldest; choose all that match again for those that are left.")
	}
	if good > 0 {
		form.Risks = append(form.Risks, ui.Plural(good, "was", "were")+
			" made good by a re-send already: the recipients get them twice.")
	}
	if sent > 0 {
		form.Risks = append(form.Risks, ui.Plural(sent, "was", "were")+
			" accepted by the mail server already: the recipients get them twice.")
	}
	if unknown > 0 {
		form.Risks = append(form.Risks, "Of "+ui.Plural(unknown, "e-mail", "e-mails")+
			" nobody knows the outcome: they may have arrived already.")
	}
	return form, uids
}
