package api

import (
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/scenario"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
)

// faultField names the uid of an order's path.
const faultField = "fault_uid"

type scenarioBody struct {
	UID   uuid.UUID  `json:"thrive_application_uid"`
	Loan  *uuid.UUID `json:"loan_application_uid"`
	Steps []string   `json:"steps"`
}

func (a *API) sandboxScenario(c echo.Context) error {
	return a.jsonEffect(c, nil, func(body *object) operation {
		wanted := scenario.Wanted{
			Name: parsed(body, "name", scenario.Parse), ProductUID: body.optionalUID("product_uid"),
			PartnerUID: callerOf(c).PartnerUID, By: actor(c),
		}
		return func(tx *postgres.Tx) (int, any, error) {
			played, err := a.Scenarios.Play(c.Request().Context(), tx, wanted)
			if err != nil {
				return 0, nil, err
			}
			answer := scenarioBody{UID: played.ApplicationUID, Steps: played.Steps}
			if played.HasLoan {
				answer.Loan = &played.ApplicationUID
			}
			return http.StatusCreated, answer, nil
		}
	})
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

func (a *API) orderFault(c echo.Context) error {
	return a.jsonEffect(c, nil, func(body *object) operation {
		order := readOrder(body)
		return func(tx *postgres.Tx) (int, any, error) {
			if err := a.checkCovered(c, readerOf(c), order.SubscriptionUID); err != nil {
				return 0, nil, err
			}
			placed, err := a.Faults.Place(c.Request().Context(), tx, order)
			if err != nil {
				return 0, nil, err
			}
			return http.StatusCreated, newFaultBody(placed), nil
		}
	})
}

func readOrder(body *object) fault.Order {
	order := fault.Order{
		SubscriptionUID: body.uid("subscription_uid"), Fault: parsed(body, "fault", parseFault),
		Count: 1,
	}
	if body.has("count") {
		order.Count = body.number("count", 1, fault.MaxCount)
	}
	delayed := order.Fault == delivery.FaultDelay
	switch {
	case delayed && body.required("delay_seconds"):
		delay := body.number("delay_seconds", 1, fault.MaxDelay)
		order.Delay = &delay
	case !delayed && order.Fault != "" && body.has("delay_seconds"):
		body.faults.Add("delay_seconds", `"delay_seconds" goes with the fault %s alone`,
			string(delivery.FaultDelay))
	}
	return order
}

func parseFault(text string) (delivery.Fault, error) {
	if !slices.Contains(fault.Faults(), delivery.Fault(text)) {
		return "", lending.Invalid("fault", `"fault" must be one of: %s`,
			lending.JoinNames(fault.Faults()))
	}
	return delivery.Fault(text), nil
}

type faultsBody struct {
	Faults []faultBody `json:"faults"`
}

func (a *API) listFaults(c echo.Context) error {
	covered, err := a.covered(c)
	if err != nil {
		return err
	}
	pending, err := a.Faults.Pending(c.Request().Context(), covered)
	if err != nil {
		return err
	}
	body := faultsBody{Faults: make([]faultBody, 0, len(pending))}
	for _, order := range pending {
		body.Faults = append(body.Faults, newFaultBody(order))
	}
	return a.answer(c, body)
}

// covered are the subscriptions that the caller may see.
func (a *API) covered(c echo.Context) ([]uuid.UUID, error) {
	found, err := a.Deliveries.SubscriptionsFor(c.Request().Context(), readerOf(c))
	uids := make([]uuid.UUID, 0, len(found))
	for _, one := range found {
		uids = append(uids, one.UID)
	}
	return uids, err
}

func (a *API) withdrawFault(c echo.Context) error {
	uid, pathErr := pathUID(c, faultField)
	return a.effect(c, nil, func(tx *postgres.Tx) (int, any, error) {
		if pathErr != nil {
			return 0, nil, pathErr
		}
		covered, err := a.covered(c)
		if err != nil {
			return 0, nil, err
		}
		order, err := a.Faults.Withdraw(c.Request().Context(), tx, uid, covered)
		if err != nil {
			return 0, nil, err
		}
		return http.StatusOK, newFaultBody(order), nil
	})
}
