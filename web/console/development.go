package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/receiver"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/subscriptions"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
)

// Development is what a development server has besides.
type Development struct {
	Receiver *receiver.Receiver
	// Sends tells that a mail server is configured.
	Sends bool
}

// developmentRoutes lists the pages of a development server; none in production.
func (c *Console) developmentRoutes() []Route {
	if c.Development == nil {
		return nil
	}
	const support, change = operator.RoleSupport, operator.RoleOperator
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, paths.Receiver, "console.receiver", support, c.receiver},
		{get, paths.ReceiverLive, "console.receiver.live", support, c.receiverLive},
		{post, paths.Receiver, "console.receiver.set", support, c.setReceiver},
		{post, paths.ReceiverSecret, "console.receiver.secret", support, c.teachReceiver},
		{post, paths.ReceiverClear, "console.receiver.clear", support, c.clearReceiver},
		{
			post, paths.ReceiverSubscribe, "console.receiver.subscribe", change,
			c.subscribeReceiver,
		},
		{get, paths.Mailbox, "console.mailbox", support, c.mailbox},
	}
}

// receiver shows the sample receiver.
func (c *Console) receiver(ctx echo.Context) error {
	if isFragment(ctx) {
		return render(ctx, http.StatusOK, operations.ReceiverRegion(c.receiverPage()))
	}
	return c.showReceiver(ctx, http.StatusOK, "")
}

func (c *Console) showReceiver(ctx echo.Context, status int, fault string) error {
	page := c.receiverPage()
	page.Fault, page.MayChange = fault, currentUser(ctx).Role.Allows(operator.RoleOperator)
	partners, err := c.partnerOptions(ctx.Request().Context(), "")
	if err != nil {
		return err
	}
	page.Partners = partners[1:] // without the choice of none
	page.Frame, err = c.Frame(ctx, ui.SectionReceiver, "Sample receiver",
		ui.Crumb{Label: "Development"}, ui.Crumb{Label: "Sample receiver"})
	if err != nil {
		return err
	}
	page.Live = true
	page.Notice = c.TakeNotice(ctx)
	return render(ctx, status, operations.ReceiverDetailPage(page))
}

// receiverPage is the receiver as it stands.
func (c *Console) receiverPage() operations.ReceiverPage {
	settings := c.Development.Receiver.Settings()
	page := operations.ReceiverPage{
		URL: c.receiverURL(), WrongURL: c.Development.Receiver.WrongAddress(),
		Mode: string(settings.Mode), Verify: settings.Verify,
	}
	for _, got := range c.Development.Receiver.Received() {
		page.Received = append(page.Received, operations.ReceivedView{
			Number: got.Number, At: got.At, Delivery: got.Delivery, Event: got.Event,
			Attempt: got.Attempt, Test: got.Test, Genuine: got.Check.Genuine, Check: got.Check.Text,
			Duplicate: got.Duplicate, Answer: got.Answer, Body: got.Body,
		})
	}
	return page
}

func (c *Console) receiverURL() string {
	return strings.TrimRight(c.PublicURL, "/") + receiver.Path
}

// receiverLive streams what comes in.
func (c *Console) receiverLive(ctx echo.Context) error {
	return c.Stream(ctx, func(request context.Context) ([]byte, error) {
		return renderHTML(request, operations.ReceiverRegion(c.receiverPage()))
	})
}

// setReceiver turns the knobs.
func (c *Console) setReceiver(ctx echo.Context) error {
	err := c.actOnReceiver(ctx, func() error {
		if c.Development.Receiver.Set(receiver.Settings{
			Mode: receiver.Mode(ctx.FormValue("mode")), Verify: ctx.FormValue("verify") != "",
		}) {
			return nil
		}
		return lending.Invalid("mode", "Choose one of the answers")
	})
	if lending.ErrorCode(err) == lending.CodeValidation {
		return c.showReceiver(ctx, http.StatusBadRequest, sentence(err.Error()))
	}
	if err != nil {
		return err
	}
	c.LeaveNotice(ctx, "Set. The next request is answered so.")
	return ctx.Redirect(http.StatusSeeOther, paths.Receiver)
}

// teachReceiver tells it a secret.
func (c *Console) teachReceiver(ctx echo.Context) error {
	text := strings.TrimSpace(ctx.FormValue("secret"))
	if text == "" {
		return c.showReceiver(ctx, http.StatusBadRequest, "Type the secret that it should know.")
	}
	err := c.actOnReceiver(ctx, func() error {
		c.Development.Receiver.Learn(secret.New(text))
		return nil
	})
	if err != nil {
		return err
	}
	c.LeaveNotice(ctx, "The receiver knows the secret now.")
	return ctx.Redirect(http.StatusSeeOther, paths.Receiver)
}

// clearReceiver forgets what came in.
func (c *Console) clearReceiver(ctx echo.Context) error {
	err := c.actOnReceiver(ctx, func() error {
		c.Development.Receiver.Clear()
		return nil
	})
	if err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, paths.Receiver)
}

// actOnReceiver does something to the receiver, which keeps all in memory, once for
// each form.
func (c *Console) actOnReceiver(ctx echo.Context, use func() error) error {
	_, err := c.act(ctx, func(context.Context, *postgres.Tx) (string, error) {
		return paths.Receiver, use()
	})
	return err
}

// subscribeReceiver creates a subscription to the receiver, which learns its
// secret.
func (c *Console) subscribeReceiver(ctx echo.Context) error {
	settings := webhook.Settings{
		URL: c.receiverURL(), Auth: webhook.AuthHMAC, Events: []string{webhook.AllEvents},
	}
	if ctx.FormValue("target") == "wrong" {
		settings.URL = c.Development.Receiver.WrongAddress()
	}
	owner, err := uuid.Parse(ctx.FormValue("partner"))
	if err != nil {
		return c.showReceiver(ctx, http.StatusBadRequest, "Choose a partner.")
	}
	var made webhook.Subscription
	var value secret.String
	outcome, err := c.Changes.Commit(ctx, action.Change{
		Done: "Created, and the receiver knows its secret. Send a test event now.",
		Do: func(request context.Context, tx *postgres.Tx) (_ operator.Outcome, err error) {
			made, value, err = c.Webhooks.Subscribe(request, tx, owner, settings, currentUser(ctx).Email)
			return operator.Did(paths.SubscriptionTab(made.UID.String(), subscriptions.TabSecret),
				operator.Entry{
					Action: "subscription.create", SubjectKind: "subscription", Subject: made.UID.String(),
					Reason: "to the sample receiver", After: made.Audited(),
				}), err
		},
	})
	if lending.ErrorCode(err) == lending.CodeValidation ||
		lending.ErrorCode(err) == lending.CodeNotFound {
		return c.showReceiver(ctx, http.StatusBadRequest, sentence(err.Error()))
	}
	if err != nil {
		return err
	}
	c.Development.Receiver.Learn(value)
	c.KeepSecret(ctx, c.Webhooks.Keys, made.UID.String(), value)
	return ctx.Redirect(http.StatusSeeOther, outcome.Target)
}

// mailbox shows the mails that were kept because there is no mail server.
func (c *Console) mailbox(ctx echo.Context) error {
	request := ctx.Request().Context()
	cursor, err := postgres.ParseCursor(ctx.QueryParam("cursor"))
	if err != nil {
		return err
	}
	mails, next, err := email.List(request, c.DB, email.Filter{State: email.StateNotSent},
		cursor, pageSize)
	if err != nil {
		return err
	}
	page := operations.Mailbox{Rows: emailRows(mails), Sends: c.Development.Sends}
	if !cursor.IsZero() {
		page.Newest = paths.Mailbox
	}
	if !next.IsZero() {
		page.Older = paths.Mailbox + "?cursor=" + next.String()
	}
	if err := c.openMail(request, &page, ctx.QueryParam("mail")); err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, ui.SectionMailbox, "Mailbox",
		ui.Crumb{Label: "Development"}, ui.Crumb{Label: "Mailbox"})
	if err != nil {
		return err
	}
	allowFrames(ctx)
	return render(ctx, http.StatusOK, operations.MailboxPage(page))
}

// openMail opens the mail that was chosen, else the newest.
func (c *Console) openMail(ctx context.Context, page *operations.Mailbox, chosen string) error {
	if len(page.Rows) == 0 {
		return nil
	}
	if chosen == "" {
		chosen = page.Rows[0].UID
	}
	uid, err := uuid.Parse(chosen)
	if err != nil {
		return lending.NewError(lending.CodeNotFound,
			"There is no such e-mail. The link may be cut off")
	}
	detail, err := email.Get(ctx, c.DB, uid)
	if err != nil {
		return err
	}
	page.Open, page.Subject = uid.String(), detail.Subject
	page.BodyURL = paths.To(paths.EmailBody, page.Open)
	return nil
}
