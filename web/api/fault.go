package api

import (
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
)

// faultField names the uid of an order's path.
const faultField = "fault_uid"

// faults serves the faults of sandboxes: deliveries that fail on purpose.
type faults struct {
	*edge

	service *fault.Service
	log     *delivery.Service
}

// routes returns the operations on faults.
func (f *faults) routes() []Route {
	withdraw := post("/v2/sandbox/faults/:uid", "sandboxFaultWithdraw", f.withdrawFault).forAll()
	withdraw.Method = http.MethodDelete
	return []Route{
		post("/v2/sandbox/faults", "sandboxFault", f.orderFault).forAll(),
		get("/v2/sandbox/faults", "sandboxFaults", f.listFaults).forAll(),
		withdraw,
	}
}

type faultBody struct {
	UID             uuid.UUID `json:"fault_uid"`
	SubscriptionUID uuid.UUID `json:"subscription_uid"`
	Fault           string    `json:"fault"`
	Count           int       `json:"count"`
	Remaining       int       `json:"remaining"`
	Delay           *int      `json:"delay_seconds"`
	CreatedAt       string    `json:"created_at"`
	ExpiresAt       string    `json:"expires_at"`
}

func newFaultBody(order fault.Order) faultBody {
	return faultBody{
		UID: order.UID, SubscriptionUID: order.SubscriptionUID, Fault: string(order.Fault),
		Count: order.Count, Remaining: order.Remaining, Delay: order.Delay,
		CreatedAt: formatTime(order.CreatedAt), ExpiresAt: formatTime(order.ExpiresAt),
	}
}

func (f *faults) orderFault(c echo.Context) error {
	return f.jsonEffect(c, nil, func(body *object) operation {
		order := fault.Order{
			SubscriptionUID: body.uid("subscription_uid"), Fault: parsed(body, "fault", parseFault),
			Count: 1,
		}
		if body.has("count") {
			order.Count = body.number("count", 1, fault.MaxCount)
		}
		delayed := order.Fault == delivery.FaultDelay
		switch given := body.has("delay_seconds"); {
		case given && !delayed && order.Fault != "":
			body.errs.Add("delay_seconds",
				`"delay_seconds" is allowed only when "fault" is %s; leave it out`, delivery.FaultDelay)
		case given || delayed && body.required("delay_seconds"):
			order.Delay = new(body.number("delay_seconds", 1, fault.MaxDelay))
		}
		return func(tx *postgres.Tx) (int, any, error) {
			if _, err := checkCovered(c, tx, order.SubscriptionUID); err != nil {
				return 0, nil, err
			}
			placed, err := f.service.Place(c.Request().Context(), tx, order)
			return http.StatusCreated, newFaultBody(placed), err
		}
	})
}

func parseFault(text string) (delivery.Fault, error) {
	if !slices.Contains(fault.Faults(), delivery.Fault(text)) {
		return "", lending.Invalid("fault", `"fault" must be one of: %s`,
			lending.JoinNames(fault.Faults()))
	}
	return delivery.Fault(text), nil
}

func (f *faults) listFaults(c echo.Context) error {
	covered, err := f.covered(c)
	if err != nil {
		return err
	}
	pending, err := f.service.Pending(c.Request().Context(), covered)
	return f.answer(c, map[string]any{"faults": each(pending, newFaultBody)}, err)
}

// covered returns the subscriptions that the caller may see.
func (f *faults) covered(c echo.Context) ([]uuid.UUID, error) {
	found, err := f.log.SubscriptionsFor(c.Request().Context(), readerOf(c))
	uids := make([]uuid.UUID, 0, len(found))
	for _, one := range found {
		uids = append(uids, one.UID)
	}
	return uids, err
}

func (f *faults) withdrawFault(c echo.Context) error {
	uid, pathErr := pathUID(c, faultField)
	covered, err := f.covered(c)
	if err != nil {
		return err
	}
	return f.pathEffect(c, pathErr, func(tx *postgres.Tx) (int, any, error) {
		order, err := f.service.Withdraw(c.Request().Context(), tx, uid, covered)
		return http.StatusOK, newFaultBody(order), err
	})
}
