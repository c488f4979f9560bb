package console

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// doctorRoutes lists the pages of the signature doctor.
func (c *Console) doctorRoutes() []Route {
	const support = operator.RoleSupport
	return []Route{
		{http.MethodGet, paths.Doctor, "console.doctor", support, c.doctorForm},
		{http.MethodPost, paths.Doctor, "console.doctor.submit", support, c.examine},
	}
}

// doctorForm asks for a body and its signature.
func (c *Console) doctorForm(ctx echo.Context) error {
	return c.showDoctor(ctx, http.StatusOK, deliveries.DoctorPage{
		Delivery: ctx.QueryParam("delivery"), Subscription: ctx.QueryParam("subscription"),
	})
}

func (c *Console) showDoctor(ctx echo.Context, status int, page deliveries.DoctorPage) error {
	var err error
	page.Frame, err = c.frame(ctx, ui.SectionDeliveries, "Signature doctor",
		ui.Crumb{Label: "Deliveries", Href: paths.Deliveries},
		ui.Crumb{Label: "Signature doctor"})
	if err != nil {
		return err
	}
	return render(ctx, status, deliveries.DoctorFormPage(page))
}

// examine answers what is wrong with a signature. That somebody asked is kept in
// the audit log, since it takes the secret to answer.
func (c *Console) examine(ctx echo.Context) error {
	page := deliveries.DoctorPage{
		Delivery:     strings.TrimSpace(ctx.FormValue("delivery")),
		Subscription: strings.TrimSpace(ctx.FormValue("subscription")),
		// Browsers write the line ends of a field in their own way.
		Body:      strings.ReplaceAll(ctx.FormValue("body"), "\r\n", "\n"),
		Signature: strings.TrimSpace(ctx.FormValue("signature")), Faults: map[string]string{},
	}
	verdict, err := c.Webhooks.Examine(ctx.Request().Context(), webhook.Examination{
		DeliveryUID:     readUID(page.Faults, "delivery", page.Delivery),
		SubscriptionUID: readUID(page.Faults, "subscription", page.Subscription),
		Body:            []byte(page.Body), Signature: page.Signature,
	})
	if len(page.Faults) > 0 {
		return c.showDoctor(ctx, http.StatusBadRequest, page)
	}
	if err != nil {
		return c.doctorFault(ctx, page, err)
	}
	if err := c.auditExamination(ctx, page, verdict); err != nil {
		return err
	}
	page.Verdict = &ui.Notice{
		Tone: ui.Warn, Title: verdict.Explanation, Text: "Next: " + verdict.Next,
	}
	if verdict.Finding == webhook.FoundValid {
		page.Verdict.Tone = ui.Good
	}
	return c.showDoctor(ctx, http.StatusOK, page)
}

// doctorFault shows a refusal beside the field that it is about.
func (c *Console) doctorFault(ctx echo.Context, page deliveries.DoctorPage, err error) error {
	switch lending.ErrorCode(err) {
	case lending.CodeValidation:
		name := "delivery"
		if page.Signature == "" {
			name = "signature"
		}
		page.Faults[name] = sentence(faultText(err))
	case lending.CodeNotFound, lending.CodeInvalidState:
		name := "subscription"
		if page.Delivery != "" {
			name = "delivery"
		}
		page.Faults[name] = sentence(faultText(err))
	default:
		return err
	}
	return c.showDoctor(ctx, http.StatusBadRequest, page)
}

func (c *Console) auditExamination(
	ctx echo.Context, page deliveries.DoctorPage, verdict webhook.SignatureVerdict,
) error {
	kind, subject := "subscription", page.Subscription
	if page.Delivery != "" {
		kind, subject = "delivery", page.Delivery
	}
	uid, err := uuid.Parse(subject)
	if err != nil {
		return err
	}
	user := currentUser(ctx)
	return c.inTx(ctx, func(request context.Context, tx *postgres.Tx) error {
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: kind + ".examine_signature",
			SubjectKind: kind, Subject: uid.String(),
			After: map[string]any{"finding": verdict.Finding},
		})
	})
}
