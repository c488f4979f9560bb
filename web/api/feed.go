package api

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/admission"
	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// events serves the event feed.
type events struct {
	*edge

	feed *feed.Service
}

// routes returns the operations that read events.
func (e *events) routes() []Route {
	follow := get("/v2/events", "listEvents", e.listEvents).forAll()
	follow.Waits = true
	return []Route{
		follow,
		get("/v2/application/:uid/events", "listApplicationEvents", e.listApplicationEvents).forAll(),
	}
}

// eventBody is the event object.
type eventBody struct {
	UID               uuid.UUID `json:"event_uid"`
	Sequence          int64     `json:"sequence"`
	Event             string    `json:"event"`
	Subject           string    `json:"subject"`
	MerchantUID       uuid.UUID `json:"merchant_uid"`
	ApplicationUID    uuid.UUID `json:"thrive_application_uid"`
	ExternalReference *string   `json:"external_reference"`
	Timestamp         string    `json:"timestamp"`
	// Body is a string, so that no JSON parser or encoder changes a byte of it.
	Body *string `json:"body"`
}

func newEventBody(event feed.Event) eventBody {
	return eventBody{
		UID: event.UID, Sequence: event.Sequence, Event: string(event.Kind),
		Subject: event.Subject, MerchantUID: event.MerchantUID,
		ApplicationUID: event.ApplicationUID, ExternalReference: event.Reference,
		Timestamp: lending.FormatTimestamp(event.OccurredAt), Body: event.Body,
	}
}

type feedBody struct {
	Events     []eventBody `json:"events"`
	NextCursor string      `json:"next_cursor"`
	HasMore    bool        `json:"has_more"`
}

// latest is the value of "after" that asks for the current cursor.
const latest = "latest"

func (e *events) listEvents(c echo.Context) error {
	query := readQuery(c)
	wanted := feed.Query{
		MerchantUIDs: merchantsOf(c), Kinds: query.kinds("event"), Limit: query.limit(),
	}
	wait := query.wait()
	after, given := query.one("after")
	if given && after != latest {
		cursor, err := feed.ParseCursor(after)
		query.errs.Merge(err)
		wanted.After = &cursor
	}
	if err := query.errs.Err(); err != nil {
		return err
	}
	ctx := postgres.MayLag(c.Request().Context())
	if after == latest {
		cursor, err := e.feed.Latest(postgres.Current(ctx))
		return e.answer(c, feedBody{Events: []eventBody{}, NextCursor: cursor.String()}, err)
	}
	slot, _ := c.Get(slotKey).(*admission.Slot)
	page, err := e.feed.Follow(ctx, wanted, wait, slot.Leave)
	c.Set(waitedKey, page.Waited)
	if err != nil {
		return err
	}
	if wait > 0 {
		// A client whose credentials ended during the wait must not read what came after.
		caller, err := e.recheck(c, nil)
		if err != nil {
			return err
		}
		page.Events = slices.DeleteFunc(page.Events, func(event feed.Event) bool {
			return !slices.Contains(caller.MerchantUIDs, event.MerchantUID)
		})
	}
	return e.answer(c, feedBody{
		Events: each(page.Events, newEventBody), NextCursor: page.Next.String(), HasMore: page.More,
	}, nil)
}

type historyEventsBody struct {
	Events       []eventBody `json:"events"`
	LastSequence int64       `json:"last_sequence"`
	HasMore      bool        `json:"has_more"`
}

func (e *events) listApplicationEvents(c echo.Context) error {
	uid, err := pathUID(c, "thrive_application_uid")
	if err != nil {
		return err
	}
	query := readQuery(c)
	from, limit := query.number("from_sequence", 1, math.MaxInt, 1), query.limit()
	if err := query.errs.Err(); err != nil {
		return err
	}
	history, err := e.feed.OfApplication(
		c.Request().Context(), merchantsOf(c), uid, int64(from), limit)
	return e.answer(c, historyEventsBody{
		Events: each(history.Events, newEventBody), LastSequence: history.Last, HasMore: history.More,
	}, err)
}

// wait reads for how many seconds the answer may be held back.
func (q *query) wait() time.Duration {
	return time.Duration(q.number("wait", 0, int(feed.MaxWait/time.Second), 0)) * time.Second
}

// waitOf returns for how long the answer will be held back while there are no events. It is
// 0 for requests that are answered at once, malformed ones included.
func waitOf(c echo.Context) time.Duration {
	query := readQuery(c)
	if after, _ := query.one("after"); after == latest {
		return 0
	}
	return query.wait()
}

// kinds reads the kinds of events that a parameter names; the parameter may be repeated.
func (q *query) kinds(name string) []lending.EventKind {
	var kinds []lending.EventKind
	for _, given := range q.values[name] {
		kind := lending.EventKind(given)
		switch {
		case !kind.IsKnown():
			q.errs.Add(name, "%q must be one of %s; leave it out for all", name,
				lending.JoinNames(lending.AllEventKinds()))
			return nil
		case !slices.Contains(kinds, kind):
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// slotKey is where the middleware stores the slot of a request that may wait.
const slotKey = "api.slot"

// waitedKey is where a handler stores for how long its answer was held back.
const waitedKey = "api.waited"

// Waited returns for how long the answer to a request was held back at its caller's
// request.
func Waited(c echo.Context) time.Duration {
	waited, _ := c.Get(waitedKey).(time.Duration)
	return waited
}
