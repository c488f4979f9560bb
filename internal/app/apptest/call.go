package apptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// Call is one request.
type Call struct {
	Method string
	// Path begins with /v2, or with / for the paths without a version.
	Path string
	// JSON is marshalled to the body; a string is sent as it is.
	JSON any
	// Form is sent as multipart/form-data, with Files as parts "files".
	Form  map[string]string
	Files map[string][]byte
	// As is the account that calls; nil is Home. Anonymous leaves the credentials out.
	As        *Account
	Anonymous bool
	Header    map[string]string
	// Departs allows a request that the OpenAPI document does not describe.
	Departs bool
}

// Answer is the response.
type Answer struct {
	Status int
	Header http.Header
	Raw    []byte

	Timestamp  string `json:"timestamp"`
	StatusCode int    `json:"statusCode"`
	Result     struct {
		Data json.RawMessage `json:"data"`
		// Error is empty on success.
		Error struct {
			Message string `json:"message"`
			Code    string `json:"code"`
			Details []struct {
				Field   string `json:"field"`
				Message string `json:"message"`
			} `json:"details"`
		} `json:"error"`
	} `json:"result"`
}

// Code is the error code, empty on success.
func (a Answer) Code() string { return a.Result.Error.Code }

// Message is the error message, empty on success.
func (a Answer) Message() string { return a.Result.Error.Message }

// Fields are the names of the invalid fields.
func (a Answer) Fields() []string {
	var fields []string
	for _, detail := range a.Result.Error.Details {
		fields = append(fields, detail.Field)
	}
	return fields
}

// Data is the result as nested maps.
func (a Answer) Data() map[string]any {
	var data map[string]any
	_ = json.Unmarshal(a.Result.Data, &data) // a result that is not an object has no fields
	return data
}

// Text is a string field of the result.
func (a Answer) Text(field string) string {
	text, _ := a.Data()[field].(string)
	return text
}

// Do sends a call and reads the envelope of the response.
func (s *Server) Do(call Call) Answer {
	s.T.Helper()
	answer, err := s.Try(call)
	s.must(err)
	return answer
}

// Try is Do for goroutines, which must not end the test.
func (s *Server) Try(call Call) (Answer, error) {
	request, err := s.request(call)
	if err != nil {
		return Answer{}, err
	}
	client := s.client
	if call.Departs {
		client = s.bare
	}
	return s.send(client, request)
}

// Download sends a call whose response is a file.
func (s *Server) Download(call Call) ([]byte, http.Header) {
	s.T.Helper()
	request, err := s.request(call)
	s.must(err)
	response, err := s.client.Do(request)
	s.must(err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	s.must(err)
	if response.StatusCode != http.StatusOK {
		s.T.Fatalf("%s answered %s", call.Path, content)
	}
	return content, response.Header
}

func (s *Server) send(client *http.Client, request *http.Request) (Answer, error) {
	path := request.URL.Path
	response, err := client.Do(request) //nolint:gosec // to our own listener
	if err != nil {
		return Answer{}, fmt.Errorf("calling %s: %w", path, err)
	}
	defer response.Body.Close()
	answer := Answer{Status: response.StatusCode, Header: response.Header}
	if answer.Raw, err = io.ReadAll(response.Body); err != nil {
		return Answer{}, fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	if err := json.Unmarshal(answer.Raw, &answer); err != nil {
		return Answer{}, fmt.Errorf("reading the envelope of %s %q: %w", path, answer.Raw, err)
	}
	if answer.StatusCode != answer.Status {
		return Answer{}, fmt.Errorf("the envelope of %s says %d, HTTP says %d",
			path, answer.StatusCode, answer.Status)
	}
	return answer, nil
}

func (s *Server) request(call Call) (*http.Request, error) {
	body, contentType, err := call.body()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(s.T.Context(), call.Method, s.URL+call.Path, body)
	if err != nil {
		return nil, fmt.Errorf("making the request of %s: %w", call.Path, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	account := s.Home
	if call.As != nil {
		account = *call.As
	}
	if !call.Anonymous {
		request.Header.Set("x-service-client-id", account.ClientID)
		request.Header.Set("x-service-client-secret", account.Secret)
	}
	for name, value := range call.Header {
		request.Header.Set(name, value)
	}
	return request, nil
}

func (c Call) body() (io.Reader, string, error) {
	switch value := c.JSON.(type) {
	case nil:
	case string:
		return strings.NewReader(value), "application/json", nil
	default:
		text, err := json.Marshal(value)
		return bytes.NewReader(text), "application/json", err
	}
	if c.Form == nil && c.Files == nil {
		return http.NoBody, "", nil
	}
	var buffer bytes.Buffer
	writer := multipart.NewWriter(&buffer)
	for name, value := range c.Form {
		if err := writer.WriteField(name, value); err != nil {
			return nil, "", err
		}
	}
	for name, content := range c.Files {
		part, err := writer.CreateFormFile("files", name)
		if err != nil {
			return nil, "", err
		}
		if _, err := part.Write(content); err != nil {
			return nil, "", err
		}
	}
	return &buffer, writer.FormDataContentType(), writer.Close()
}

// Draw requests a draw on a loan.
func (s *Server) Draw(uid uuid.UUID, form map[string]string) Answer {
	s.T.Helper()
	return s.Do(Call{
		Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/request-draw", Form: form,
	})
}

// PDF is the content of a small, valid PDF file.
func PDF() []byte {
	return []byte("%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n" +
		"trailer\n<< /Root 1 0 R >>\n%%EOF\n")
}
