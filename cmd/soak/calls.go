package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// caller makes calls as a partner and reads pages as an operator.
type caller struct {
	program *program
	api     *http.Client
	console *http.Client
	next    atomic.Int64
	// certificate is a multipart body with a document.
	certificate     []byte
	certificateType string

	mu sync.Mutex
	// loans can be drawn on, others only read and told of.
	loans []string
}

// certificateSize is that of an uploaded document.
const certificateSize = 256 << 10

// callTimeout bounds a call.
const callTimeout = 30 * time.Second

// newCaller signs in to the console and makes the first loans.
func newCaller(ctx context.Context, p *program, users int) (*caller, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the operator: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: users, MaxIdleConns: 2 * users}
	c := &caller{
		program: p,
		api:     &http.Client{Transport: transport, Timeout: callTimeout},
		console: &http.Client{Transport: transport.Clone(), Timeout: callTimeout, Jar: jar},
	}
	if err := c.writeCertificate(); err != nil {
		return nil, fmt.Errorf("writing a certificate: %w", err)
	}
	user := p.demo.Users[len(p.demo.Users)-1]
	form := url.Values{"email": {user.Email}, "password": {user.Password}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/console/sign-in",
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if _, err := c.send(c.console, request); err != nil {
		return nil, err
	}
	for range users {
		if err := c.open(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// writeCertificate makes the body of every upload.
func (c *caller) writeCertificate() error {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, err := form.CreateFormFile("files", "certificate.pdf")
	if err != nil {
		return err
	}
	const head, tail = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%", "\n%%EOF\n"
	filling := strings.Repeat("x", certificateSize-len(head)-len(tail))
	if _, err := io.WriteString(part, head+filling+tail); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	c.certificate, c.certificateType = text.Bytes(), form.FormDataContentType()
	return nil
}

// identifiers are left out of what is said of a failure, so that those of one kind
// are counted together.
var identifiers = regexp.MustCompile(`/[0-9a-f-]*\d[0-9a-f-]*(/|$)`)

// errStatus is an answer that is no success.
var errStatus = errors.New("was answered")

// send makes a request and returns the answer's body.
func (c *caller) send(client *http.Client, request *http.Request) ([]byte, error) {
	what := request.Method + " " + identifiers.ReplaceAllString(request.URL.Path, "/ID$1")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", what, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %w %d %.200s", what, errStatus, response.StatusCode, body)
	}
	return body, nil
}

// payload is the body of a request and its content type, both empty for none.
type payload struct {
	data []byte
	kind string
}

// partner calls the API and decodes the data of its answer.
func (c *caller) partner(
	ctx context.Context, method, path string, body payload, into any,
) error {
	request, err := http.NewRequestWithContext(ctx, method, c.program.url+"/api/v2"+path,
		bytes.NewReader(body.data))
	if err != nil {
		return fmt.Errorf("calling %s: %w", path, err)
	}
	if body.kind != "" {
		request.Header.Set("Content-Type", body.kind)
	}
	client := c.program.demo.Partners[0].Clients[0]
	request.Header.Set("x-service-client-id", client.ID)
	request.Header.Set("x-service-client-secret", client.Secret)
	if method != http.MethodGet {
		request.Header.Set("Idempotency-Key", "soak-"+strconv.FormatInt(c.next.Add(1), 10))
	}
	answer, err := c.send(c.api, request)
	if err != nil || into == nil {
		return err
	}
	var envelope struct {
		Result struct {
			Data json.RawMessage `json:"data"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return json.Unmarshal(envelope.Result.Data, into)
}

// post sends JSON.
func (c *caller) post(ctx context.Context, path, body string, into any) error {
	return c.partner(ctx, http.MethodPost, path, payload{[]byte(body), "application/json"}, into)
}

// open leads an application to a loan: four calls.
func (c *caller) open(ctx context.Context) error {
	var made struct {
		UID string `json:"thrive_application_uid"`
	}
	err := c.post(ctx, "/application", `{
		"requested_amount": "20000.00",
		"borrower": {"first_name": "Ada", "last_name": "Moreno", "email": "ada@example.com",
		             "annual_income": "180000.00"},
		"project": {"name": "Roof"}}`, &made)
	if err != nil {
		return err
	}
	err = c.post(ctx, "/application/create-run-decision",
		`{"thrive_application_uid":"`+made.UID+`"}`, nil)
	if err != nil {
		return err
	}
	err = c.partner(ctx, http.MethodPut, "/application/accept-offer",
		payload{fmt.Appendf(nil, `{"thrive_application_uid":%q,"selected_product_uid":%q}`,
			made.UID, c.program.demo.Products[0].UID), "application/json"}, nil)
	if err != nil {
		return err
	}
	err = c.post(ctx, "/sandbox/application/"+made.UID+"/status", `{"status":"Approved"}`, nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loans = append(c.loans, made.UID)
	return nil
}

// take removes a loan that can be drawn on, empty if there is none to spare.
func (c *caller) take() string {
	const kept = 8 // for those who only look
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.loans) <= kept {
		return ""
	}
	at := rand.IntN(len(c.loans) - kept)
	uid := c.loans[at]
	c.loans[at] = c.loans[len(c.loans)-1]
	c.loans = c.loans[:len(c.loans)-1]
	return uid
}

// any returns one of the loans.
func (c *caller) any() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loans[rand.IntN(len(c.loans))]
}

// draw draws the first stage of a loan and has it paid out: three calls.
func (c *caller) draw(ctx context.Context) error {
	uid := c.take()
	if uid == "" {
		return c.open(ctx)
	}
	var drawn struct {
		ID int64 `json:"merchantDisbursementId"`
	}
	err := c.partner(ctx, http.MethodPost, "/loan/"+uid+"/request-draw", payload{}, &drawn)
	for _, status := range []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
		if err == nil {
			err = c.post(ctx, fmt.Sprintf("/sandbox/disbursement/%d/status", drawn.ID),
				`{"status":"`+status+`"}`, nil)
		}
	}
	return err
}

// upload stores a certificate.
func (c *caller) upload(ctx context.Context) error {
	return c.partner(ctx, http.MethodPost, "/loan/"+c.any()+"/completion-cert-upload",
		payload{c.certificate, c.certificateType}, nil)
}

// task creates a task, which is told by webhooks and a mail.
func (c *caller) task(ctx context.Context) error {
	return c.post(ctx, "/sandbox/application/"+c.any()+"/task", `{"title":"Send the contract"}`, nil)
}

// read reads a loan.
func (c *caller) read(ctx context.Context) error {
	return c.partner(ctx, http.MethodGet, "/loan/"+c.any(), payload{}, nil)
}

// pages are those that an operator looks at in turn.
var pages = []string{
	"/console", "/console/deliveries", "/console/deliveries?state=failed", "/console/applications",
	"/console/emails", "/console/subscriptions",
}

// look reads a page of the console.
func (c *caller) look(ctx context.Context) error {
	page := pages[rand.IntN(len(pages))]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.program.url+page, http.NoBody)
	if err != nil {
		return fmt.Errorf("reading %s: %w", page, err)
	}
	_, err = c.send(c.console, request)
	return err
}
