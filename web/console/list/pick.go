package list

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/search"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// maxSought bounds the text that a picker looks for, in bytes.
const maxSought = 100

// Pick offers things of a kind under a first option for none: those whose names hold
// a text, and the chosen one in any case. The picker is nil when all are offered.
func (e *Engine) Pick(
	ctx context.Context, kind search.Kind, none, text, chosen string,
) ([]ui.Option, *ui.Picker, error) {
	found, err := e.Things.Pick(ctx, kind, cut(text), uuid.Nil)
	if err != nil {
		return nil, nil, err
	}
	options, known := []ui.Option{{Label: none}}, false
	for _, choice := range found.Choices {
		known = known || choice.UID.String() == chosen
		options = append(options, ui.Option{Value: choice.UID.String(), Label: choice.Label})
	}
	if uid, err := uuid.Parse(chosen); err == nil && !known {
		named, err := e.Things.Name(ctx, kind, uid)
		if err != nil {
			return nil, nil, err
		}
		for _, choice := range named {
			options = append(options, ui.Option{Value: choice.UID.String(), Label: choice.Label})
		}
	}
	if text == "" && found.Total <= len(found.Choices) {
		return options, nil, nil
	}
	return options, &ui.Picker{
		Kind: string(kind), None: none, Text: text, Shown: len(found.Choices), Total: found.Total,
	}, nil
}

func cut(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxSought)], "")
}

// PickRoute answers a picker while somebody types.
func (e *Engine) PickRoute() page.Route {
	return page.Get(paths.Pick, "console.pick", operator.RoleSupport, func(ctx echo.Context) error {
		kind := search.Kind(ctx.Param("kind"))
		if !search.CanPick(kind) {
			return lending.NewError(lending.CodeNotFound, "there is nothing of this kind to choose")
		}
		field, none := ctx.QueryParam("field"), ctx.QueryParam("none")
		options, picker, err := e.Pick(ctx.Request().Context(), kind, none,
			ctx.QueryParam(field+ui.SoughtSuffix), ctx.QueryParam(field))
		if err != nil {
			return err
		}
		return page.Render(ctx, http.StatusOK,
			ui.Picks(options, picker, ctx.QueryParam(field)))
	})
}
