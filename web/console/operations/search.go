package operations

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/why"
	"drawbridge/views/operations"
	"drawbridge/web/console/page"
)

// search redirects to the one thing that matches the text, or lists the matches. A question
// about a missing event is answered. Under htmx it returns only the list, which the palette
// shows while the user types.
func (f *Feature) search(ctx echo.Context) error {
	request, sought := ctx.Request().Context(), strings.TrimSpace(ctx.QueryParam("q"))
	hits, err := f.Search.Find(request, sought)
	if err != nil {
		return err
	}
	hits = operations.Reachable(request, hits)
	missed, err := f.missed(request, sought)
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) {
		pages := operations.PagesNamed(request, sought, string(page.User(ctx).Role))
		return page.Render(ctx, http.StatusOK, operations.Hits(operations.Found{
			Sought: sought, Hits: hits, Pages: pages, Missed: missed,
		}))
	}
	switch {
	case len(hits) == 1 && missed == nil:
		return ctx.Redirect(http.StatusSeeOther, operations.HitHref(hits[0]))
	case len(hits) == 0 && missed != nil:
		return ctx.Redirect(http.StatusSeeOther, missed.Href())
	}
	return f.Show(ctx, http.StatusOK, page.Place{Title: "Search", Query: sought},
		operations.Search(operations.Found{Sought: sought, Hits: hits, Missed: missed}))
}

// missed answers a search that asks why somebody did not get an event. It returns nil if
// the search asks no such question, or about nobody.
func (f *Feature) missed(ctx context.Context, sought string) (*operations.WhyProps, error) {
	subject, question, asked := why.Parse(sought)
	if !asked {
		return nil, nil //nolint:nilnil // nothing was asked
	}
	shown := operations.WhyProps{Subject: subject, Question: question}
	err := f.answer(ctx, &shown)
	if err != nil || shown.Answer == nil && len(shown.Candidates) == 0 {
		return nil, err
	}
	return &shown, nil
}

// answer sets the answer, or the candidates if the subject is ambiguous.
func (f *Feature) answer(ctx context.Context, shown *operations.WhyProps) error {
	var err error
	shown.Candidates, err = f.Why.Candidates(ctx, shown.Subject, shown.Question)
	if err != nil || len(shown.Candidates) != 1 {
		return err
	}
	one := shown.Candidates[0]
	if shown.Question.Draw == 0 {
		shown.Question.Draw = one.Draw
	}
	shown.Question.ApplicationUID = one.ApplicationUID
	answer, err := f.Why.Ask(ctx, shown.Question)
	if err != nil {
		return err
	}
	shown.Answer = &answer
	return nil
}

// why answers why an application, or one of its draws, did not get an event.
func (f *Feature) why(ctx echo.Context) error {
	shown := operations.WhyProps{
		Subject: strings.TrimSpace(ctx.QueryParam("q")), Wrong: map[string]string{},
		Question: why.Question{
			Kind: lending.EventKind(ctx.QueryParam("event")), Status: ctx.QueryParam("status"),
		},
	}
	if text := ctx.QueryParam("draw"); text != "" {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number <= 0 {
			shown.Wrong["q"] = "A draw is named by its number, such as 1005."
		}
		shown.Question.Draw = number
	}
	if shown.Question.Kind != "" && !shown.Question.Kind.IsKnown() {
		shown.Wrong["event"] = "This is not a kind of event. Choose one from the list."
	}
	status := http.StatusOK
	switch {
	case len(shown.Wrong) > 0:
		status = http.StatusBadRequest
	case shown.Subject != "" && shown.Question.Kind != "":
		err := f.answer(ctx.Request().Context(), &shown)
		refusal, refused := errors.AsType[*lending.Error](err)
		if err != nil && !refused {
			return err
		}
		if refused {
			shown.Wrong["q"], status = refusal.Message, http.StatusBadRequest
		}
	}
	return f.Show(ctx, status, page.Place{Title: "Why did it not arrive?"}, operations.Why(shown))
}
