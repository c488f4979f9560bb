package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// The uids of paths.
const (
	deliveryField = "delivery_uid"
	recoveryField = "recovery_uid"
)

// The quotas of re-sends: single deliveries per subscription and hour, and recoveries per
// day.
const (
	resendsInAnHour  = 100
	recoveriesInADay = 10
)

// deliveries serves the deliveries to a partner.
type deliveries struct {
	*edge

	log  *delivery.Service
	bulk *bulk.Service
}

// routes returns the operations that read deliveries and re-send them.
func (d *deliveries) routes() []Route {
	return []Route{
		get("/v2/subscriptions", "listSubscriptions", d.listSubscriptions).forAll(),
		get("/v2/deliveries", "listDeliveries", d.listDeliveries).forAll(),
		get("/v2/deliveries/:uid", "getDelivery", d.getDelivery).forAll(),
		post("/v2/deliveries/:uid/resend", "resendDelivery", d.resendDelivery).forAll(),
		post("/v2/recoveries", "createRecovery", d.createRecovery).forAll(),
		get("/v2/recoveries/:uid", "getRecovery", d.getRecovery).forAll(),
	}
}

// readerOf returns the caller as a reader of deliveries.
func readerOf(c echo.Context) delivery.Reader {
	caller := callerOf(c)
	return delivery.Reader{PartnerUID: caller.PartnerUID, Merchants: caller.MerchantUIDs}
}

// authorOf names the caller in records that operators read.
func authorOf(c echo.Context) string { return "client " + callerOf(c).ClientID }

type subscriptionBody struct {
	UID       uuid.UUID   `json:"subscription_uid"`
	Name      *string     `json:"name"`
	URL       string      `json:"url"`
	Auth      string      `json:"auth"`
	Events    []string    `json:"events"`
	Merchants []uuid.UUID `json:"merchants"`
	State     string      `json:"state"`
}

func newSubscriptionBody(s subscription.Subscription) subscriptionBody {
	return subscriptionBody{
		UID: s.UID, Name: postgres.OrNull(s.Name), URL: s.URL, Auth: string(s.Auth),
		Events: s.Events, Merchants: append([]uuid.UUID{}, s.Merchants...), State: string(s.State),
	}
}

func (d *deliveries) listSubscriptions(c echo.Context) error {
	found, err := d.log.SubscriptionsFor(c.Request().Context(), readerOf(c))
	return d.answer(c, map[string]any{"subscriptions": each(found, newSubscriptionBody)}, err)
}

// deliveryBody is the delivery object.
type deliveryBody struct {
	UID             uuid.UUID  `json:"delivery_uid"`
	EventUID        uuid.UUID  `json:"event_uid"`
	Sequence        *int64     `json:"sequence"`
	SubscriptionUID uuid.UUID  `json:"subscription_uid"`
	Event           string     `json:"event"`
	ApplicationUID  uuid.UUID  `json:"thrive_application_uid"`
	MerchantUID     *uuid.UUID `json:"merchant_uid"`
	State           string     `json:"state"`
	AttemptCount    int        `json:"attempt_count"`
	HTTPStatus      *int       `json:"http_status"`
	ErrorClass      *string    `json:"error_class"`
	NextAttemptAt   *string    `json:"next_attempt_at"`
	ResendOf        *uuid.UUID `json:"resend_of"`
	MadeGoodBy      *uuid.UUID `json:"made_good_by"`
	Test            bool       `json:"test"`
	CreatedAt       string     `json:"created_at"`
	FinishedAt      *string    `json:"finished_at"`
}

func newDeliveryBody(d delivery.Read) deliveryBody {
	return deliveryBody{
		UID: d.UID, EventUID: d.EventUID, Sequence: d.Sequence, SubscriptionUID: d.SubscriptionUID,
		Event: string(d.Event), ApplicationUID: d.ApplicationUID, MerchantUID: d.MerchantUID,
		State: string(d.State), AttemptCount: d.AttemptCount, HTTPStatus: d.LastHTTPStatus,
		ErrorClass: d.LastErrorClass, NextAttemptAt: formatGiven(d.Due()),
		ResendOf: d.ResendOf, MadeGoodBy: d.MadeGoodBy, Test: d.Test,
		CreatedAt: formatTime(d.CreatedAt), FinishedAt: formatOptional(d.FinishedAt),
	}
}

// deliveryList names the list in its cursors.
const deliveryList = "deliveries"

func (d *deliveries) listDeliveries(c echo.Context) error {
	query := readQuery(c)
	given, _ := query.one("state")
	state := delivery.State(given)
	if given != "" && !slices.Contains(delivery.States(), state) {
		query.errs.Add("state", "%q must be one of %s; leave it out for all", "state",
			lending.JoinNames(delivery.States()))
	}
	filter := delivery.Filter{
		State:           state,
		SubscriptionUID: query.uid("subscription_uid"),
		ApplicationUID:  query.uid("thrive_application_uid"),
		Since:           query.moment("since"), Until: query.moment("until"),
	}
	page := query.page(deliveryList)
	if event, given := query.one("event"); given {
		filter.Event = lending.EventKind(event)
		query.kinds("event")
	}
	if err := query.errs.Err(); err != nil {
		return err
	}
	found, next, err := d.log.ListFor(c.Request().Context(), readerOf(c), filter, page)
	return d.answer(c, map[string]any{
		"deliveries": each(found, newDeliveryBody), "next_cursor": cursorOf(deliveryList, next),
	}, err)
}

// uid reads a UUID parameter and returns the nil UUID if it is absent. A nil UUID that was given
// becomes the maximum UUID, which matches nothing: filters treat the nil UUID as no filter.
func (q *query) uid(name string) uuid.UUID {
	given, ok := q.one(name)
	if !ok {
		return uuid.Nil
	}
	uid, err := uuid.Parse(given)
	if err != nil || len(given) != uidLength {
		q.errs.Add(name, "%q must be a UUID such as 0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d", name)
	}
	if uid == uuid.Nil {
		return uuid.Max
	}
	return uid
}

type attemptBody struct {
	Number     int     `json:"number"`
	StartedAt  string  `json:"started_at"`
	DurationMS int64   `json:"duration_ms"`
	HTTPStatus *int    `json:"http_status"`
	ErrorClass *string `json:"error_class"`
	Error      *string `json:"error"`
}

type deliveryDetailBody struct {
	deliveryBody

	Attempts []attemptBody `json:"attempts"`
}

func (d *deliveries) getDelivery(c echo.Context) error {
	uid, err := pathUID(c, deliveryField)
	if err != nil {
		return err
	}
	found, attempts, err := d.log.GetFor(c.Request().Context(), readerOf(c), uid)
	if err != nil {
		return err
	}
	body := deliveryDetailBody{newDeliveryBody(found), make([]attemptBody, 0, len(attempts))}
	for _, one := range attempts {
		body.Attempts = append(body.Attempts, attemptBody{
			Number: one.Number, StartedAt: formatTime(one.StartedAt),
			DurationMS: one.Duration.Milliseconds(), HTTPStatus: postgres.OrNull(one.HTTPStatus),
			ErrorClass: postgres.OrNull(string(one.ErrorClass)), Error: postgres.OrNull(one.Error),
		})
	}
	return d.answer(c, body, nil)
}

func (d *deliveries) resendDelivery(c echo.Context) error {
	uid, pathErr := pathUID(c, deliveryField)
	return d.pathEffect(c, pathErr, func(tx *postgres.Tx) (int, any, error) {
		ctx, by := c.Request().Context(), authorOf(c)
		made, err := d.log.ResendFor(ctx, tx, readerOf(c), uid, by)
		if err != nil {
			return 0, nil, err
		}
		// The limit is per subscription, so the subscription is the subject.
		err = operator.AuditLimited(ctx, tx, operator.Entry{
			Actor: by, Address: c.RealIP(), Action: "delivery.resend", SubjectKind: "subscription",
			Subject: made.SubscriptionUID.String(), PerSubject: true,
			After: map[string]any{"delivery_uid": made.UID, "resend_of": uid},
		}, resendsInAnHour, time.Hour)
		return http.StatusCreated, newDeliveryBody(made), err
	})
}

type recoveryBody struct {
	UID             uuid.UUID `json:"recovery_uid"`
	SubscriptionUID uuid.UUID `json:"subscription_uid"`
	State           string    `json:"state"`
	Since           string    `json:"since"`
	Until           string    `json:"until"`
	Total           int       `json:"total"`
	Sent            int       `json:"sent"`
	Delivered       int       `json:"delivered"`
	Failed          int       `json:"failed"`
	CreatedAt       string    `json:"created_at"`
	FinishedAt      *string   `json:"finished_at"`
}

func newRecoveryBody(r bulk.Resend) recoveryBody {
	return recoveryBody{
		UID: r.UID, SubscriptionUID: r.Scope.Subscriptions[0], State: string(r.State),
		Since: formatTime(r.Scope.Since), Until: formatTime(r.Scope.Until),
		Total: r.Counts.Total(), Sent: r.Counts.Gone(),
		Delivered: r.Counts.Delivered, Failed: r.Counts.Failed, CreatedAt: formatTime(r.CreatedAt),
		FinishedAt: formatGiven(r.EndedAt),
	}
}

func (d *deliveries) createRecovery(c echo.Context) error {
	return d.jsonEffect(c, nil, func(body *object) operation {
		wanted := bulk.Recovery{
			SubscriptionUID: body.uid("subscription_uid"),
			Since:           body.moment("since", true), Until: body.moment("until", false),
			By: authorOf(c),
		}
		return func(tx *postgres.Tx) (int, any, error) {
			ctx, reader := c.Request().Context(), readerOf(c)
			covered, err := checkCovered(c, tx, wanted.SubscriptionUID)
			if err != nil {
				return 0, nil, err
			}
			wanted.PartnerUID, wanted.Merchants = reader.PartnerUID, covered
			entry := operator.Entry{
				Actor: wanted.By, Address: c.RealIP(), Action: "recovery.create",
				SubjectKind: "bulk_resend",
			}
			if err := operator.CheckLimit(ctx, tx, entry, recoveriesInADay, 24*time.Hour); err != nil {
				return 0, nil, err
			}
			begun, err := d.bulk.Recover(ctx, tx, wanted)
			if err != nil {
				return 0, nil, err
			}
			entry.Subject, entry.After = begun.UID.String(), map[string]any{
				"subscription_uid": wanted.SubscriptionUID, "total": begun.Counts.Total(),
			}
			return http.StatusAccepted, newRecoveryBody(begun), operator.Audit(ctx, tx, entry)
		}
	})
}

// checkCovered refuses a subscription that was deleted or that the caller may not see. It
// returns which of the caller's merchants the subscription covers.
func checkCovered(c echo.Context, tx *postgres.Tx, uid uuid.UUID) ([]uuid.UUID, error) {
	found, err := delivery.CoverageFor(c.Request().Context(), tx, readerOf(c), uid)
	switch {
	case lending.ErrorCode(err) == lending.CodeNotFound:
		return nil, lending.Invalid("subscription_uid",
			`"subscription_uid" must be a subscription that GET /v2/subscriptions lists`)
	case err == nil && found.State == subscription.StateDeleted:
		return nil, lending.NewError(lending.CodeInvalidState,
			"subscription %s was deleted: nothing can be sent to it", uid)
	}
	return found.Merchants, err
}

func (d *deliveries) getRecovery(c echo.Context) error {
	uid, err := pathUID(c, recoveryField)
	if err != nil {
		return err
	}
	found, err := d.bulk.RecoveryOf(c.Request().Context(), uid, authorOf(c))
	if err != nil {
		return err
	}
	return d.answer(c, newRecoveryBody(found), nil)
}
