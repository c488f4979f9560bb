package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"strconv"
)

// Application is the part of an application that this program reads.
type Application struct {
	UID    string  `json:"thrive_application_uid"`
	Status string  `json:"status"`
	Offers []Offer `json:"offers"`
}

// Offer is one product's offer. Amounts are strings and stay strings.
type Offer struct {
	ProductUID     string `json:"product_uid"`
	ProductCode    string `json:"product_code"`
	ApprovedAmount string `json:"approved_amount"`
	InterestRate   string `json:"interest_rate"`
	Term           string `json:"term"`
}

// Loan is the part of a loan that this program reads.
type Loan struct {
	Amount        string         `json:"loan_amount"`
	Balance       string         `json:"balance"`
	Schedule      []Stage        `json:"schedule"`
	Disbursements []Disbursement `json:"disbursements"`
}

// Stage is one step of the schedule.
type Stage struct {
	Number     int    `json:"stage"`
	Percentage string `json:"percentage"`
	Amount     string `json:"scheduled_amount"`
}

// Disbursement is a draw.
type Disbursement struct {
	ID     int64  `json:"merchantDisbursementId"`
	Number int    `json:"disbursementNumber"`
	Gross  string `json:"grossDisbursedAmount"`
	Net    string `json:"netDisbursedAmount"`
	Status string `json:"status"`
}

// Preview is what a draw would be.
type Preview struct {
	Kind              string  `json:"kind"`
	GrossAmount       *string `json:"gross_amount"`
	DocumentsRequired bool    `json:"documents_required"`
	Refusal           *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"refusal"`
}

// Draw is what to send with a draw; the zero value draws the whole stage.
type Draw struct {
	// Certificate is a PDF; nil for none.
	Certificate []byte
	// Metadata describes the certificate; nil for none.
	Metadata map[string]any
}

// send posts JSON; the key makes it safe to send again.
func (c *Client) send(ctx context.Context, path, key string, body, data any) error {
	return c.sendJSON(ctx, request{method: http.MethodPost, path: path, key: key}, body, data)
}

func (c *Client) sendJSON(ctx context.Context, call request, body, data any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	call.contentType, call.body = "application/json", text
	return c.call(ctx, call, data)
}

// get calls an operation that changes nothing.
func (c *Client) get(ctx context.Context, path string, data any) error {
	return c.call(ctx, request{method: http.MethodGet, path: path}, data)
}

// CreateApplication opens an application. The reference is the caller's own id,
// and the key of the request: one reference makes one application.
func (c *Client) CreateApplication(
	ctx context.Context, reference, amount string,
) (Application, error) {
	var created Application
	err := c.send(ctx, "/v2/application", "create-"+reference, map[string]any{
		"requested_amount": amount, "external_reference": reference,
		"borrower": map[string]string{
			"first_name": "Ada", "last_name": "Moreno", "email": "ada.moreno@example.com",
			"annual_income": "180000.00",
		},
		"project": map[string]string{"name": "Rooftop solar, 8.4 kW"},
	}, &created)
	return created, err
}

// RunDecision decides an application.
func (c *Client) RunDecision(ctx context.Context, uid string) (Application, error) {
	var decided Application
	err := c.send(ctx, "/v2/application/create-run-decision", "decide-"+uid,
		map[string]string{"thrive_application_uid": uid}, &decided)
	return decided, err
}

// AcceptOffer accepts a product's offer.
func (c *Client) AcceptOffer(ctx context.Context, uid, productUID string) error {
	var accepted struct {
		Selected bool `json:"offer_selected"`
	}
	call := request{
		method: http.MethodPut, path: "/v2/application/accept-offer",
		key: "accept-" + uid + "-" + productUID,
	}
	return c.sendJSON(ctx, call,
		map[string]string{"thrive_application_uid": uid, "selected_product_uid": productUID},
		&accepted)
}

// Approve plays the underwriter, which only the sandbox allows.
func (c *Client) Approve(ctx context.Context, uid string) (Application, error) {
	var moved Application
	err := c.send(ctx, "/v2/sandbox/application/"+uid+"/status",
		"approve-"+uid, map[string]string{"status": "Approved"}, &moved)
	return moved, err
}

// Loan reads a loan.
func (c *Client) Loan(ctx context.Context, uid string) (Loan, error) {
	var loan Loan
	err := c.get(ctx, "/v2/loan/"+uid, &loan)
	return loan, err
}

// Preview asks what the next draw would be.
func (c *Client) Preview(ctx context.Context, uid string) (Preview, error) {
	var preview Preview
	err := c.get(ctx, "/v2/loan/"+uid+"/draw-preview", &preview)
	return preview, err
}

// RequestDraw draws. The key names the intention, so that a lost answer can be
// asked for again and never draws twice.
func (c *Client) RequestDraw(
	ctx context.Context, uid, key string, draw Draw,
) (Disbursement, error) {
	call := request{method: http.MethodPost, path: "/v2/loan/" + uid + "/request-draw", key: key}
	var drawn Disbursement
	if err := draw.write(&call); err != nil {
		return drawn, fmt.Errorf("writing the draw: %w", err)
	}
	err := c.call(ctx, call, &drawn)
	return drawn, err
}

// write makes the multipart body; a draw without documents has none.
func (d Draw) write(call *request) error {
	if d.Certificate == nil && d.Metadata == nil {
		return nil
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if d.Certificate != nil {
		part, err := form.CreateFormFile("files", "certificate.pdf")
		if err != nil {
			return err
		}
		if _, err := part.Write(d.Certificate); err != nil {
			return err
		}
	}
	if d.Metadata != nil {
		text, err := json.Marshal(d.Metadata)
		if err != nil {
			return err
		}
		if err := form.WriteField("metadata", string(text)); err != nil {
			return err
		}
	}
	if err := form.Close(); err != nil {
		return err
	}
	call.body, call.contentType = body.Bytes(), form.FormDataContentType()
	return nil
}

// Fund plays the bank, which only the sandbox allows.
func (c *Client) Fund(ctx context.Context, id int64, status string) (Disbursement, error) {
	number := strconv.FormatInt(id, 10)
	var moved Disbursement
	err := c.send(ctx, "/v2/sandbox/disbursement/"+number+"/status",
		"fund-"+number+"-"+status, map[string]string{"status": status}, &moved)
	return moved, err
}
