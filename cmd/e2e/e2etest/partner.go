package e2etest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/waittest"
)

// Send sends a request as the first demo client, with a JSON body unless it is nil. The request
// must succeed; Send returns the data of the result.
func Send(t *testing.T, data Demo, method, url string, body any) map[string]any {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	response := send(t, data, method, url, content{jsonType, text})
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s answered %s, %v", method, url, answer, err)
	}
	var envelope struct {
		Result struct {
			Data map[string]any `json:"data"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Result.Data
}

// Subscribe sends the first demo partner's events to an address, all of them unless the flags
// name some.
func (w *Harness) Subscribe(data Demo, url string, flags ...string) Subscription {
	w.T.Helper()
	if !slices.Contains(flags, "--event") {
		flags = append(flags, "--event", "all")
	}
	var made Subscription
	w.JSON(&made, append([]string{
		"subscription", "create", "--partner", data.Partners[0].UID.String(), "--url", url,
	}, flags...)...)
	return made
}

// WantDraw requests a draw as RequestDraw does, and fails the test if it is refused.
func WantDraw(t *testing.T, base string, data Demo, stage string) {
	t.Helper()
	if status := RequestDraw(t, base, data, stage); status != http.StatusOK {
		t.Fatalf("the draw %s answered %d", stage, status)
	}
}

// RequestDraw requests a draw on the demo loan of a stage and returns the status.
func RequestDraw(t *testing.T, base string, data Demo, stage string) int {
	t.Helper()
	at := slices.IndexFunc(data.Loans, func(l DemoLoan) bool { return l.Stage == stage })
	if at < 0 {
		t.Fatalf("the demo data has no loan %s", stage)
	}
	path := "/api/v2/loan/" + data.Loans[at].UID.String() + "/request-draw"
	return Call(t, data, http.MethodPost, base+path, "")
}

// Call sends a request, with a JSON body unless it is empty, with the first demo client's
// credentials and returns the status of the response.
func Call(t *testing.T, data Demo, method, url, body string) int {
	t.Helper()
	response := send(t, data, method, url, content{jsonType, []byte(body)})
	defer response.Body.Close()
	return response.StatusCode
}

// PostForm posts a form of fields as Call does.
func PostForm(t *testing.T, data Demo, url string, fields map[string]string) int {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		if err := form.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	sent := content{form.FormDataContentType(), body.Bytes()}
	response := send(t, data, http.MethodPost, url, sent)
	defer response.Body.Close()
	return response.StatusCode
}

// content is a body, which may be empty, and its type.
type content struct {
	kind string
	text []byte
}

const jsonType = "application/json"

// send sends a request with the first demo client's credentials.
func send(t *testing.T, data Demo, method, url string, body content) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body.text))
	if err != nil {
		t.Fatal(err)
	}
	if len(body.text) > 0 {
		request.Header.Set("Content-Type", body.kind)
	}
	client := data.Partners[0].Clients[0]
	request.Header.Set("x-service-client-id", client.ID)
	request.Header.Set("x-service-client-secret", client.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// WaitForState polls the delivery until its state is the wanted one.
func (w *Harness) WaitForState(uid, state string) DeliveryDetail {
	w.T.Helper()
	var detail DeliveryDetail
	waittest.Within(w.T, time.Minute, "delivery "+uid+" is "+state, func() bool {
		detail = DeliveryDetail{}
		w.JSON(&detail, "delivery", "show", uid)
		return detail.State == state
	})
	return detail
}
