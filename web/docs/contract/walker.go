package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Walker brings a running server into the state that an example needs, by the
// published operations alone.
type Walker struct {
	// BaseURL is the address before /v2.
	BaseURL string
	// ClientID and Secret are those of a client that acts for one merchant.
	ClientID, Secret string
	// ProductUID is an active product with the schedule 40, 40, 20 and a fee of
	// 3.75 % that lends 25000.00.
	ProductUID string
	HTTP       *http.Client
}

// Send sends an example with the walker's credentials. The caller closes the
// body of the answer.
func (w *Walker) Send(ctx context.Context, example Example) (*http.Response, error) {
	request, err := example.Request(w.BaseURL)
	if err != nil {
		return nil, err
	}
	request.Header.Set("x-service-client-id", w.ClientID)
	request.Header.Set("x-service-client-secret", w.Secret)
	return w.HTTP.Do(request.WithContext(ctx))
}

// Make creates what an example needs and returns what to replace in it.
func (w *Walker) Make(ctx context.Context, needs string) (map[string]string, error) {
	made := map[string]string{ProductUID: w.ProductUID}
	for need := range strings.SplitSeq(needs, " with ") {
		if err := w.makeOne(ctx, need, made); err != nil {
			return nil, fmt.Errorf("making %s: %w", need, err)
		}
	}
	return made, nil
}

func (w *Walker) makeOne(ctx context.Context, need string, made map[string]string) error {
	var err error
	switch need {
	case "":
	case "application.new":
		made[ApplicationUID], err = w.application(ctx)
	case "application.sibling":
		made[SiblingUID], err = w.application(ctx)
	case "application.offered":
		made[ApplicationUID], err = w.offered(ctx)
	case "application.approved", "loan.first":
		made[ApplicationUID], err = w.loan(ctx, 0)
	case "loan.middle":
		made[ApplicationUID], err = w.loan(ctx, 1)
	case "loan.final":
		made[ApplicationUID], err = w.loan(ctx, 2)
	case "task.pending":
		made[TaskUID], err = w.task(ctx)
	case "disbursement.requested":
		made[DisbursementID], err = w.disbursement(ctx, "")
	case "disbursement.processing":
		made[DisbursementID], err = w.disbursement(ctx, "FUNDING_PROCESSING")
	default:
		err = errors.New("no such need")
	}
	return err
}

// call sends one request and returns result.data.
func (w *Walker) call(ctx context.Context, path string, body any) (map[string]any, error) {
	example := Example{Method: http.MethodPost, Path: path}
	if strings.HasSuffix(path, "/accept-offer") {
		example.Method = http.MethodPut
	}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		example.Body, example.ContentType = text, "application/json"
	}
	response, err := w.Send(ctx, example)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	if closed := response.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s answered %d: %s", path, response.StatusCode, text)
	}
	var envelope struct {
		Result struct{ Data map[string]any }
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // identifiers are not floating point
	err = decoder.Decode(&envelope)
	return envelope.Result.Data, err
}

func (w *Walker) application(ctx context.Context) (string, error) {
	data, err := w.call(ctx, "/v2/application", map[string]any{
		"requested_amount": "25000.00",
		"borrower": map[string]string{
			"first_name": "Ada", "last_name": "Moreno", "email": "ada.moreno@example.com",
		},
		"project": map[string]string{"name": "Rooftop solar"},
	})
	return fmt.Sprint(data["thrive_application_uid"]), err
}

func (w *Walker) offered(ctx context.Context) (string, error) {
	uid, err := w.application(ctx)
	if err != nil {
		return "", err
	}
	_, err = w.call(ctx, "/v2/application/create-run-decision",
		map[string]string{"thrive_application_uid": uid})
	return uid, err
}

// loan opens a loan and settles the first draws of it.
func (w *Walker) loan(ctx context.Context, settled int) (string, error) {
	uid, err := w.offered(ctx)
	if err != nil {
		return "", err
	}
	if _, err := w.call(ctx, "/v2/application/accept-offer", map[string]string{
		"thrive_application_uid": uid, "selected_product_uid": w.ProductUID,
	}); err != nil {
		return "", err
	}
	if _, err := w.call(ctx, "/v2/sandbox/application/"+uid+"/status",
		map[string]string{"status": "Approved"}); err != nil {
		return "", err
	}
	for range settled {
		id, err := w.draw(ctx, uid)
		if err != nil {
			return "", err
		}
		for _, status := range []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
			if err := w.fund(ctx, id, status); err != nil {
				return "", err
			}
		}
	}
	return uid, nil
}

func (w *Walker) draw(ctx context.Context, uid string) (string, error) {
	data, err := w.call(ctx, "/v2/loan/"+uid+"/request-draw", nil)
	return fmt.Sprint(data["merchantDisbursementId"]), err
}

func (w *Walker) fund(ctx context.Context, id, status string) error {
	_, err := w.call(ctx, "/v2/sandbox/disbursement/"+id+"/status",
		map[string]string{"status": status})
	return err
}

// disbursement draws, and moves the draw to a status unless that is empty.
func (w *Walker) disbursement(ctx context.Context, status string) (string, error) {
	uid, err := w.loan(ctx, 0)
	if err != nil {
		return "", err
	}
	id, err := w.draw(ctx, uid)
	if err != nil || status == "" {
		return id, err
	}
	return id, w.fund(ctx, id, status)
}

func (w *Walker) task(ctx context.Context) (string, error) {
	uid, err := w.loan(ctx, 0)
	if err != nil {
		return "", err
	}
	data, err := w.call(ctx, "/v2/sandbox/application/"+uid+"/task",
		map[string]string{"title": "Proof of income"})
	return fmt.Sprint(data["task_uid"]), err
}
