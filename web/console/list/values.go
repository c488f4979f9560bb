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

// Kind is the kind of a filter's field.
type Kind int

// The kinds of filters. Text is the zero one.
const (
	Text Kind = iota
	// Choice is a list to choose from.
	Choice
	// Time is a time in the reader's zone.
	Time
	// Hidden has no field; only links set it.
	Hidden
)

// Filter is one filter of a list.
type Filter struct {
	// Name is its query parameter.
	Name string
	// Label is the label of its field. Chip is the prefix of its chip among the active
	// filters, the label if empty.
	Label, Chip string
	Kind        Kind
	// Max bounds a text, in characters; zero means the 36 of an identifier.
	Max               int
	Hint, Placeholder string
	// Options are the choices, the first one meaning any; OptionsOf is used if they need a
	// query.
	Options   []ui.Option
	OptionsOf func(ctx context.Context) ([]ui.Option, error)
	// Pick is the kind of thing that a picker offers, if a list of options would be too long;
	// the only option then means any.
	Pick search.Kind
	// Open accepts any value, and adds one that is not an option to the options.
	Open bool
	// Thing names a value, the filter's name if empty: "There is no such kind".
	Thing string
	// Word returns a value's text in the chip; nil uses the option's label or the value itself.
	Word func(value string) string
	// WordOf is Word for texts that need a query; nil if not used.
	WordOf func(ctx context.Context, value string) (string, error)
}

// Values are the filter of a list as read from the address. Wrong values are left out of
// the filter and listed in Wrong.
type Values struct {
	// Now and Zone are the reader's, because "today" depends on both.
	Now  time.Time
	Zone *time.Location
	User operator.User
	// Wrong has the error of each wrong parameter.
	Wrong map[string]string

	path string
	// stated is the zone of times that name no zone.
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

// Read reads the filter of a list for another page, from the query of the list's address.
func Read[R any](ctx echo.Context, e *Engine, spec Spec[R], query url.Values) *Values {
	return lister[R]{e, spec}.read(ctx, query)
}

// Values reads filters from the address of a page that is not a list.
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
		v.Wrong["cursor"] = "The page's position in the list cannot be read; start from the newest."
	}
	return v
}

// Text returns a value as typed, without surrounding spaces.
func (v *Values) Text(name string) string { return v.texts[name] }

// Is reports whether an on/off filter is on; "yes" is its only value.
func (v *Values) Is(name string) bool { return OneOf(v, name, []string{"yes"}) != "" }

// YesNo returns a filter that is yes or no, nil for either.
func (v *Values) YesNo(name string) *bool {
	value := OneOf(v, name, []string{"yes", "no"})
	if value == "" {
		return nil
	}
	return new(value == "yes")
}

// OneOf returns a value of a closed list, empty if it is absent or wrong.
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

// UID returns an identifier, the nil UUID if it is absent.
func (v *Values) UID(name string) uuid.UUID { return page.ReadUID(v.Wrong, name, v.texts[name]) }

// Time returns a time, the zero time if it is absent. A time without a zone is in the form's zone,
// or else in the reader's, and gets that zone, so that the address means the same to everybody.
func (v *Values) Time(name string) time.Time {
	at := page.ReadTime(v.Wrong, name, v.texts[name], v.stated)
	if _, err := time.Parse(time.RFC3339, v.texts[name]); err != nil && !at.IsZero() {
		v.texts[name] = at.In(v.Zone).Format(time.RFC3339)
	}
	return at
}

// Span returns the time between the filters since and until, or from the start of the
// chosen range.
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

// Query returns the filter as the query of an address, without a position in the list.
// Wrong values are kept, so that they can be corrected.
func (v *Values) Query() url.Values {
	query := url.Values{}
	for name, text := range v.texts {
		query.Set(name, text)
	}
	return query
}

// href returns the list's address with the filter and one parameter changed, or removed if
// the value is empty.
func (v *Values) href(name, value string) string {
	query := v.Query()
	query.Del(name)
	if value != "" {
		query.Set(name, value)
	}
	return paths.With(v.path, query)
}

// Local formats a time of the filter for a control in the reader's zone. A time that cannot
// be parsed is returned as it is.
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

// choices sets the options of a filter's field, and returns the label of the chosen value.
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

// word returns the text of a value in its chip; shown is its text in the field.
func (f Filter) word(ctx context.Context, value, shown string) (string, error) {
	switch {
	case f.WordOf != nil:
		return f.WordOf(ctx, value)
	case f.Word != nil:
		return f.Word(value), nil
	}
	return shown, nil
}

// addFilter adds a filter's field and chip to the page.
func (v *Values) addFilter(ctx context.Context, filter Filter, props *ui.ListProps) (err error) {
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

// wrongFilters lists the errors in the order of the form.
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
