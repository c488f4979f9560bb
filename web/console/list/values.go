package list

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// Kind is how a filter is filled in.
type Kind int

// The kinds of filters. Text is the zero one.
const (
	Text Kind = iota
	// Choice is a list to choose from.
	Choice
	// Time is a time in the reader's zone.
	Time
	// Hidden has no field: only links set it.
	Hidden
)

// Filter is one filter of a list.
type Filter struct {
	// Name is its parameter of the address.
	Name string
	// Label is its field's. Chip begins its chip among the filters in force, the label
	// when empty.
	Label, Chip string
	Kind        Kind
	// Max bounds a text, in characters; an identifier's 36 when zero.
	Max               int
	Hint, Placeholder string
	// Options are the choices, the first one for any; OptionsOf, where they depend on
	// what there is.
	Options   []ui.Option
	OptionsOf func(ctx context.Context) ([]ui.Option, error)
	// Pick is what it chooses one of, where there may be more than a list has room for; the
	// one option is for any.
	Pick search.Kind
	// Open takes any value, and shows one that is no option as one more.
	Open bool
	// Thing is what a value names, the filter's name when empty: "There is no such kind".
	Thing string
	// Word is how the chip shows a value, nil for the option's label or the value itself.
	Word func(value string) string
	// WordOf is the same, where it depends on what there is; nil without.
	WordOf func(ctx context.Context, value string) (string, error)
}

// Values are the filter of a list as the reader's address has it. What is wrong is
// left out of the filter, and named in Wrong.
type Values struct {
	// Now and Zone are the reader's: "today" depends on both.
	Now  time.Time
	Zone *time.Location
	User operator.User
	// Wrong says what is wrong with a value, by parameter.
	Wrong map[string]string

	path string
	// stated is the zone of times that name none.
	stated *time.Location
	texts  map[string]string
	asked  url.Values
	place  string
	mode   mode
	tab    string
	specs  map[string]Filter
	pick   func(
		ctx context.Context, kind search.Kind, none, text, chosen string,
	) ([]ui.Option, *ui.Picker, error)
}

// Read reads the filter of a list that another page needs, from a query of its address.
func Read[R any](ctx echo.Context, e *Engine, spec Spec[R], query url.Values) *Values {
	return lister[R]{e, spec}.read(ctx, query)
}

// Values reads filters from the address of a page that is no list.
func (e *Engine) Values(ctx echo.Context, filters ...Filter) *Values {
	spec := Spec[struct{}]{
		Path: ctx.Request().URL.Path, Filters: filters,
		CheckPlace: func(string) bool { return true }, // it has no pages
	}
	return lister[struct{}]{e, spec}.read(ctx, ctx.QueryParams())
}

// read reads the address of a list.
func (l lister[R]) read(ctx echo.Context, query url.Values) *Values {
	zone, _ := l.Zone(ctx)
	v := &Values{
		Now: l.DB.Now(), Zone: zone, User: page.User(ctx), Wrong: map[string]string{}, path: l.Path,
		stated: page.FormZone(ctx),
		texts:  map[string]string{}, asked: query, place: query.Get("cursor"),
		tab: l.Tabs.Name, specs: map[string]Filter{}, pick: l.Pick,
	}
	switch {
	case query.Get("tail") != "":
		v.mode = modeTail
	case query.Get("news") != "":
		v.mode = modeNews
	}
	take := func(name, unsaid string) {
		if text := strings.TrimSpace(query.Get(name)); text != "" && text != unsaid {
			v.texts[name] = text
		}
	}
	for _, filter := range l.Filters {
		v.specs[filter.Name] = filter
		take(filter.Name, "")
	}
	if v.tab != "" {
		take(v.tab, l.Tabs.Default)
	}
	if l.CheckPlace == nil {
		l.CheckPlace = func(text string) bool {
			_, err := postgres.ParseCursor(text)
			return err == nil
		}
	}
	if v.place != "" && !l.CheckPlace(v.place) {
		v.Wrong["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	return v
}

// Text is a value as it was typed, without spaces around it.
func (v *Values) Text(name string) string { return v.texts[name] }

// Is tells whether a filter that is on or off is on; yes is its only value.
func (v *Values) Is(name string) bool { return OneOf(v, name, []string{"yes"}) != "" }

// YesNo is a filter that may be yes or no, nil for either.
func (v *Values) YesNo(name string) *bool {
	value := OneOf(v, name, []string{"yes", "no"})
	if value == "" {
		return nil
	}
	return new(value == "yes")
}

// OneOf is a value of a closed list, empty for none and for a wrong one.
func OneOf[T ~string](v *Values, name string, known []T) T {
	value := T(v.texts[name])
	if value == "" || slices.Contains(known, value) {
		return value
	}
	thing, where := name, "of the list"
	if v.specs[name].Thing != "" {
		thing = v.specs[name].Thing
	}
	if name == v.tab {
		where = "above"
	}
	v.Wrong[name] = "There is no such " + thing + "; choose one " + where + "."
	return ""
}

// UID is an identifier, the nil one for none.
func (v *Values) UID(name string) uuid.UUID { return page.ReadUID(v.Wrong, name, v.texts[name]) }

// Time is a time, zero for none. One without a zone is in the form's, else the reader's, and gets
// it, so that the address means the same to everybody.
func (v *Values) Time(name string) time.Time {
	at := page.ReadTime(v.Wrong, name, v.texts[name], v.stated)
	if _, err := time.Parse(time.RFC3339, v.texts[name]); err != nil && !at.IsZero() {
		v.texts[name] = at.In(v.Zone).Format(time.RFC3339)
	}
	return at
}

// Span is the time between the filters since and until, from the beginning of the range on
// that was chosen.
func (v *Values) Span() (since, until time.Time) {
	since, until = v.Time("since"), v.Time("until")
	if from := v.rangeStart(); from.After(since) {
		since = from.UTC()
	}
	if !until.IsZero() && !since.Before(until) {
		v.Wrong["until"] = "The end must come after the beginning."
	}
	return since, until
}

// Query is the filter as the query of an address, without a place in the list. What
// was wrong is kept, so that it can be corrected.
func (v *Values) Query() url.Values {
	query := url.Values{}
	for name, text := range v.texts {
		query.Set(name, text)
	}
	return query
}

// href is the list under the filter with one parameter changed, or without it when
// the value is empty.
func (v *Values) href(name, value string) string {
	query := v.Query()
	query.Del(name)
	if value != "" {
		query.Set(name, value)
	}
	return paths.With(v.path, query)
}

// Local writes a time of the filter as a control of the reader's zone has it, and as
// it is when it cannot be read.
func (v *Values) Local(name string) string {
	at, err := time.Parse(time.RFC3339, v.texts[name])
	if err != nil {
		return v.texts[name]
	}
	at = at.In(v.Zone)
	if at.Second() != 0 {
		return at.Format("2006-01-02T15:04:05")
	}
	return at.Format("2006-01-02T15:04")
}

func (v *Values) tabs(tabs Tabs) []ui.Tab {
	var found []ui.Tab
	for _, option := range tabs.Options {
		found = append(found, ui.Tab{
			Label: option.Label, Href: v.href(tabs.Name, option.Value),
			Current: v.texts[tabs.Name] == option.Value,
		})
	}
	return found
}

// choices fills in what a filter's field offers, and returns what the chosen value is called.
func (v *Values) choices(
	ctx context.Context, filter Filter, field *ui.Control, props *ui.ListProps,
) (shown string, err error) {
	value := v.texts[filter.Name]
	field.Options = filter.Options
	switch {
	case filter.Pick != "":
		text := v.asked.Get(filter.Name + ui.SoughtSuffix)
		props.Sought = props.Sought || text != ""
		field.Options, field.Pick, err = v.pick(ctx, filter.Pick, filter.Options[0].Label, text, value)
	case filter.OptionsOf != nil:
		field.Options, err = filter.OptionsOf(ctx)
	}
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(field.Options, func(o ui.Option) bool { return o.Value == value })
	if at >= 0 {
		return field.Options[at].Label, nil
	}
	if filter.Open {
		field.Options = append(slices.Clip(field.Options), ui.Option{Value: value, Label: value})
	}
	return value, nil
}

// word is how the chip shows a value, of which the field says what is shown.
func (f Filter) word(ctx context.Context, value, shown string) (string, error) {
	switch {
	case f.WordOf != nil:
		return f.WordOf(ctx, value)
	case f.Word != nil:
		return f.Word(value), nil
	}
	return shown, nil
}

// furnish adds a filter's field and chip to the page.
func (v *Values) furnish(ctx context.Context, filter Filter, props *ui.ListProps) (err error) {
	value := v.texts[filter.Name]
	field := ui.Control{
		ID: "filter-" + filter.Name, Name: filter.Name, Label: filter.Label, Hint: filter.Hint,
		Error: v.Wrong[filter.Name], Value: value, Placeholder: filter.Placeholder,
	}
	shown := value
	switch filter.Kind {
	case Text:
		field.MaxLength, field.Autocomplete = filter.Max, "off"
		if filter.Max == 0 {
			field.MaxLength = 36
		}
	case Time:
		field.Type, field.Step, field.Value = "datetime-local", "any", v.Local(filter.Name)
		field.Label += ", " + v.Zone.String()
		shown = strings.Replace(field.Value, "T", " ", 1)
	case Choice:
		if shown, err = v.choices(ctx, filter, &field, props); err != nil {
			return err
		}
	case Hidden:
		if value != "" {
			props.Hidden = append(props.Hidden, ui.HiddenField{Name: filter.Name, Value: value})
			if filter.Pick != "" {
				if shown, err = v.choices(ctx, filter, &field, props); err != nil {
					return err
				}
			}
		}
	}
	if filter.Kind != Hidden {
		props.Fields = append(props.Fields, field)
	}
	if value == "" {
		return nil
	}
	if shown, err = filter.word(ctx, value, shown); err != nil {
		return err
	}
	label := filter.Chip
	if label == "" {
		label = filter.Label + " "
	}
	props.Active = append(props.Active,
		ui.ActiveFilter{Label: label + shown, Href: v.href(filter.Name, "")})
	return nil
}

// wrongFilters lists what is wrong in the order of the form.
func (v *Values) wrongFilters(tabs Tabs, filters []Filter) []ui.FieldError {
	var found []ui.FieldError
	wrong := maps.Clone(v.Wrong)
	add := func(name, href string) {
		if wrong[name] != "" {
			found = append(found, ui.FieldError{Href: href, Text: wrong[name]})
		}
		delete(wrong, name)
	}
	add(tabs.Name, "")
	for _, filter := range filters {
		if filter.Kind == Hidden {
			add(filter.Name, "")
		} else {
			add(filter.Name, "#filter-"+filter.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		add(name, "")
	}
	return found
}
