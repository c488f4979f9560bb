// Package development is the console's pages of a development server: the sample receiver,
// and the mailbox of e-mails that were stored instead of sent.
package development

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/receiver"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/development"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// maxPartners bounds the list of partners to choose from.
const maxPartners = 500

// Server holds the extras of a development server.
type Server struct {
	Receiver *receiver.Receiver
	// Sends means that a mail server is configured.
	Sends bool
}

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Server

	Partners *partner.Service
	Webhooks *webhook.Services
}

// Routes lists the pages and changes. The receiver keeps everything in memory, so changes
// of it have no audit entry.
func (f *Feature) Routes() []page.Route {
	const support = operator.RoleSupport
	return []page.Route{
		page.Get(paths.Receiver, "console.receiver", support, f.receiver),
		page.Get(paths.ReceiverLive, "console.receiver.live", support, f.receiverLive),
		page.Post(paths.Receiver, "console.receiver.set", support, f.setReceiver),
		page.Post(paths.ReceiverSecret, "console.receiver.secret", support, f.teachReceiver),
		page.Post(paths.ReceiverClear, "console.receiver.clear", support, f.clearReceiver),
		page.Post(paths.ReceiverSubscribe, "console.receiver.subscribe", operator.RoleOperator,
			f.subscribeReceiver),
		page.Get(paths.Mailbox, "console.mailbox", support, f.mailbox),
	}
}

// receiver shows the sample receiver.
func (f *Feature) receiver(ctx echo.Context) error {
	if page.IsFragment(ctx) {
		return page.Render(ctx, http.StatusOK, development.Received(f.Receiver.Received()))
	}
	return f.showReceiver(ctx, http.StatusOK, "")
}

func (f *Feature) showReceiver(ctx echo.Context, status int, wrong string) error {
	partners, _, err := f.Partners.ListPartners(ctx.Request().Context(),
		partner.Filter{}, postgres.Paging{Limit: maxPartners})
	if err != nil {
		return err
	}
	place := page.Place{
		Section: ui.SectionReceiver, Title: "Sample receiver", Live: true,
		Above: []ui.Crumb{{Label: "Development"}},
	}
	return f.Show(ctx, status, place, development.Receiver(development.ReceiverProps{
		URL: f.receiverURL(), WrongURL: f.Receiver.WrongAddress(), Settings: f.Receiver.Settings(),
		Received: f.Receiver.Received(), Partners: partners, Wrong: wrong,
		Slow: f.Receiver.Slow, Timeout: f.Webhooks.Subscriptions.Sender.Timeout(),
	}))
}

func (f *Feature) receiverURL() string {
	return strings.TrimRight(f.PublicURL, "/") + receiver.Path
}

// receiverLive streams the received requests.
func (f *Feature) receiverLive(ctx echo.Context) error {
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		return page.HTML(request, development.Received(f.Receiver.Received()))
	})
}

// setReceiver changes the receiver's behaviour.
func (f *Feature) setReceiver(ctx echo.Context) error {
	return f.actOnReceiver(ctx, "Saved. It applies from the next request.", func() error {
		if f.Receiver.Set(receiver.Settings{
			Mode: receiver.Mode(ctx.FormValue("mode")), Verify: ctx.FormValue("verify") != "",
		}) {
			return nil
		}
		return lending.Invalid("mode", "Choose one of the answers")
	})
}

// teachReceiver gives the receiver a secret.
func (f *Feature) teachReceiver(ctx echo.Context) error {
	text := strings.TrimSpace(ctx.FormValue("secret"))
	return f.actOnReceiver(ctx, "The receiver knows the secret now.", func() error {
		if text == "" {
			return lending.Invalid("secret", "Type the secret that the receiver should accept")
		}
		f.Receiver.Learn(secret.New(text))
		return nil
	})
}

// clearReceiver deletes the received requests.
func (f *Feature) clearReceiver(ctx echo.Context) error {
	return f.actOnReceiver(ctx, "", func() error {
		f.Receiver.Clear()
		return nil
	})
}

// actOnReceiver changes the receiver, once per form.
func (f *Feature) actOnReceiver(ctx echo.Context, done string, use func() error) error {
	_, err := f.Commit(ctx, action.Change{
		Done: done,
		Do: func(context.Context, *postgres.Tx) (operator.Outcome, error) {
			return operator.Outcome{Target: paths.Receiver}, use()
		},
	})
	return f.answer(ctx, paths.Receiver, err)
}

// answer redirects, or shows a refusal on the receiver's page.
func (f *Feature) answer(ctx echo.Context, target string, err error) error {
	if code := lending.ErrorCode(err); code == lending.CodeValidation ||
		code == lending.CodeNotFound {
		return f.showReceiver(ctx, http.StatusBadRequest, page.Sentence(err.Error()))
	}
	if err != nil {
		return err
	}
	return page.Redirect(ctx, target)
}

// subscribeReceiver creates a subscription to the receiver and gives the receiver its
// secret.
func (f *Feature) subscribeReceiver(ctx echo.Context) error {
	settings := subscription.Settings{
		URL: f.receiverURL(), Auth: sender.AuthHMAC, Events: []string{subscription.AllEvents},
	}
	if ctx.FormValue("target") == "wrong" {
		settings.URL = f.Receiver.WrongAddress()
	}
	owner, err := uuid.Parse(ctx.FormValue("partner"))
	if err != nil {
		return f.showReceiver(ctx, http.StatusBadRequest, "Choose a partner.")
	}
	var uid string
	var value secret.String
	outcome, err := f.Commit(ctx, action.Change{
		Done: "Created, and the receiver knows its secret. Send a test event now.",
		Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			made, shown, err := f.Webhooks.Subscriptions.Subscribe(
				request, tx, owner, settings, page.User(ctx).Email)
			uid, value = made.UID.String(), shown
			return operator.Did(paths.SubscriptionTab(uid, "secret"), operator.Entry{
				Action: "subscription.create", SubjectKind: "subscription", Subject: uid,
				Reason: "to the sample receiver", After: made.Audited(),
			}), err
		},
	})
	if err == nil {
		f.Receiver.Learn(value)
		f.KeepSecret(ctx, f.Webhooks.Subscriptions.Keys, uid, value)
	}
	return f.answer(ctx, outcome.Target, err)
}

// mailbox shows the e-mails that were stored because there is no mail server, and the
// chosen one, or else the newest.
func (f *Feature) mailbox(ctx echo.Context) error {
	request := ctx.Request().Context()
	cursor, err := postgres.ParseCursor(ctx.QueryParam("cursor"))
	if err != nil {
		return err
	}
	mails, next, err := email.List(request, f.DB, email.Filter{State: email.StateNotSent},
		postgres.Paging{From: cursor, Limit: list.PageSize})
	if err != nil {
		return err
	}
	pager := ui.PagerProps{Summary: "Newest first"}
	if !cursor.IsZero() {
		pager.Newest = paths.Mailbox
	}
	if !next.IsZero() {
		pager.Older = paths.Where(paths.Mailbox, "cursor", next.String())
	}
	var open email.Detail
	if len(mails) > 0 {
		uid := mails[0].EmailUID
		if chosen := ctx.QueryParam("mail"); chosen != "" {
			if uid, err = uuid.Parse(chosen); err != nil {
				return lending.NewError(lending.CodeNotFound,
					"There is no such e-mail. The link may be cut off")
			}
		}
		if open, err = email.Get(request, f.DB, uid); err != nil {
			return err
		}
	}
	// This page may embed frames of this origin.
	ctx.Response().Header().Set("Content-Security-Policy", page.Policy+"; frame-src 'self'")
	place := page.Place{
		Section: ui.SectionMailbox, Title: "Mailbox", Above: []ui.Crumb{{Label: "Development"}},
	}
	return f.Show(ctx, http.StatusOK, place, development.Mailbox(mails, open, pager, f.Sends))
}
