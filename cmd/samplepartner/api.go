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

// Preview describes a draw before it is made.
type Preview struct {
	Kind              string  `json:"kind"`
	GrossAmount       *string `json:"gross_amount"`
	DocumentsRequired bool    `json:"documents_required"`
	Refusal           *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"refusal"`
}

// Draw has the optional parts of a draw request; the zero value draws the whole stage.
type Draw struct {
	// Certificate is a PDF; nil for none.
	Certificate []byte
	// Metadata describes the certificate; nil for none.
	Metadata map[string]any
}

// post sends JSON and returns the data of the response; the key makes a repeat safe.
func post[T any](ctx context.Context, c *Client, path, key string, body any) (T, error) {
	return sendJSON[T](ctx, c, request{method: http.MethodPost, path: path, key: key}, body)
}

func sendJSON[T any](ctx context.Context, c *Client, call request, body any) (data T, err error) {
	if call.body, err = json.Marshal(body); err != nil {
		return data, fmt.Errorf("writing the request: %w", err)
	}
	call.contentType = "application/json"
	err = c.call(ctx, call, &data)
	return data, err
}

// get makes a request that changes nothing.
func get[T any](ctx context.Context, c *Client, path string) (data T, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: path}, &data)
	return data, err
}

// CreateApplication creates an application. The reference is the caller's own id and also the
// idempotency key: one reference creates one application.
func (c *Client) CreateApplication(
	ctx context.Context, reference, amount string,
) (Application, error) {
	return post[Application](ctx, c, "/v2/application", "create-"+reference, map[string]any{
		"requested_amount": amount, "external_reference": reference,
		"borrower": map[string]string{
			"first_name": "Ada", "last_name": "Moreno", "email": "ada.moreno@example.com",
			"annual_income": "180000.00",
		},
		"project": map[string]string{"name": "Rooftop solar, 8.4 kW"},
	})
}

// RunDecision decides an application.
func (c *Client) RunDecision(ctx context.Context, uid string) (Application, error) {
	return post[Application](ctx, c, "/v2/application/create-run-decision", "decide-"+uid,
		map[string]string{"thrive_application_uid": uid})
}

// AcceptOffer accepts a product's offer.
func (c *Client) AcceptOffer(ctx context.Context, uid, productUID string) error {
	call := request{
		method: http.MethodPut, path: "/v2/application/accept-offer",
		key: "accept-" + uid + "-" + productUID,
	}
	_, err := sendJSON[struct{}](ctx, c, call,
		map[string]string{"thrive_application_uid": uid, "selected_product_uid": productUID})
	return err
}

// Approve approves in place of the underwriter, which only the sandbox allows.
func (c *Client) Approve(ctx context.Context, uid string) (Application, error) {
	return post[Application](ctx, c, "/v2/sandbox/application/"+uid+"/status",
		"approve-"+uid, map[string]string{"status": "Approved"})
}

// Loan reads a loan.
func (c *Client) Loan(ctx context.Context, uid string) (Loan, error) {
	return get[Loan](ctx, c, "/v2/loan/"+uid)
}

// Preview returns what the next draw would be.
func (c *Client) Preview(ctx context.Context, uid string) (Preview, error) {
	return get[Preview](ctx, c, "/v2/loan/"+uid+"/draw-preview")
}

// RequestDraw requests a draw. The key identifies the intention, so that the request can be
// repeated after a lost response and never draws twice.
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

// write writes the multipart body; a draw without documents has no body.
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

// Fund reports a funding status in place of the bank, which only the sandbox allows.
func (c *Client) Fund(ctx context.Context, id int64, status string) (Disbursement, error) {
	number := strconv.FormatInt(id, 10)
	return post[Disbursement](ctx, c, "/v2/sandbox/disbursement/"+number+"/status",
		"fund-"+number+"-"+status, map[string]string{"status": status})
}
