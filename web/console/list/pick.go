package list

import (
	"context"
	"maps"
	"net/http"
	"slices"
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

const (
	// maxSought bounds the search text of a picker, in bytes.
	maxSought = 100
	// offered is how many things a picker lists before the user types; if there are more, it
	// lists only examples of them.
	offered, examples = 12, 3
	// maxTicked bounds the ticked things where several can be chosen.
	maxTicked = 500
)

// Pick offers things of a kind after a first option for none: those whose names contain the
// text, and always the chosen one. The picker is nil if all things are offered.
func (e *Engine) Pick(
	ctx context.Context, kind search.Kind, none, text, chosen string,
) ([]ui.Option, *ui.Picker, error) {
	options, picker, err := e.pick(ctx, ui.Picker{Kind: string(kind), None: none, Text: text}, chosen)
	return append([]ui.Option{{Label: none}}, options...), picker, err
}

// PickSeveral offers things of a kind to tick, those of one partner or, with the nil owner,
// of all partners: the ticked ones, and others whose names contain the text.
func (e *Engine) PickSeveral(
	ctx context.Context, kind search.Kind, owner uuid.UUID, text string, ticked []string,
) ([]ui.Option, *ui.Picker, error) {
	return e.pick(ctx, ui.Picker{
		Kind: string(kind), Text: text, Owner: owner.String(), Several: true,
	}, ticked...)
}

func (e *Engine) pick(
	ctx context.Context, asked ui.Picker, chosen ...string,
) ([]ui.Option, *ui.Picker, error) {
	kind := search.Kind(asked.Kind)
	owner, _ := uuid.Parse(asked.Owner) // without one: of all partners
	sought := strings.ToValidUTF8(asked.Text[:min(len(asked.Text), maxSought)], "")
	found, err := e.Things.Pick(ctx, kind, sought, owner, offered)
	if err != nil {
		return nil, nil, err
	}
	if asked.Text == "" && found.Total > len(found.Choices) {
		found.Choices = found.Choices[:examples]
	}
	var options []ui.Option
	missing := map[uuid.UUID]bool{}
	for _, text := range chosen[:min(len(chosen), maxTicked)] {
		if uid, err := uuid.Parse(text); err == nil {
			missing[uid] = true
		}
	}
	for _, choice := range found.Choices {
		delete(missing, choice.UID)
		options = append(options, ui.Option{Value: choice.UID.String(), Label: choice.Label})
	}
	if len(missing) > 0 {
		named, err := e.Things.Name(ctx, kind, slices.Collect(maps.Keys(missing))...)
		if err != nil {
			return nil, nil, err
		}
		for _, choice := range named {
			options = append(options, ui.Option{Value: choice.UID.String(), Label: choice.Label})
		}
	}
	if asked.Text == "" && found.Total <= len(found.Choices) {
		return options, nil, nil
	}
	asked.Shown, asked.Total = len(found.Choices), found.Total
	return options, &asked, nil
}

// PickRoute returns the route that answers a picker while the user types.
func (e *Engine) PickRoute() page.Route {
	return page.Get(paths.Pick, "console.pick", operator.RoleSupport, func(ctx echo.Context) error {
		kind := search.Kind(ctx.Param("kind"))
		if !search.CanPick(kind) {
			return lending.NewError(lending.CodeNotFound, "nothing of this kind can be chosen")
		}
		query := ctx.QueryParams()
		field, none := query.Get("field"), query.Get("none")
		text := query.Get(field + ui.SoughtSuffix)
		if query.Get("several") != "" {
			owner, _ := uuid.Parse(query.Get("owner")) // without one: of all partners
			options, picker, err := e.PickSeveral(ctx.Request().Context(), kind, owner, text, query[field])
			if err != nil {
				return err
			}
			return page.Render(ctx, http.StatusOK, ui.Ticks(ui.Control{
				Name: field, Values: query[field], Options: options, Pick: picker,
			}.Asked()))
		}
		options, picker, err := e.Pick(ctx.Request().Context(), kind, none, text, query.Get(field))
		if err != nil {
			return err
		}
		return page.Render(ctx, http.StatusOK, ui.Picks(options, picker, query.Get(field)))
	})
}
