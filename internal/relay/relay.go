// Package relay follows a server's feed of events over HTTP and posts each event to an
// address of the person who runs it, as a webhook would arrive, for a laptop that
// webhooks cannot reach.
//
// An event counts as forwarded once its receiver answered with a 2xx; only then is the
// next one sent. So none is lost while server, network or receiver are down, and one is
// sent twice only if the receiver's answer was lost.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

const (
	// waitSeconds is how long the server may hold an answer back, in seconds, and readTimeout the
	// timeout of that request.
	waitSeconds = 30
	readTimeout = 45 * time.Second
	// forwardTimeout is how long a receiver may take to answer (specification section 6.1).
	forwardTimeout = 30 * time.Second
	// The pauses after failures, each twice the one before.
	minPause, maxPause = 500 * time.Millisecond, 30 * time.Second
	// maxAnswer bounds how much of an answer is read.
	maxAnswer = 64 << 20
)

// environmentHeader names the environment of an answer or a webhook.
const environmentHeader = "x-drawbridge-environment"

// Relay configures what to follow and where to post it.
type Relay struct {
	// BaseURL precedes /v2.
	BaseURL string
	// ClientID and ClientSecret are those of a partner's client; Merchant narrows a group to
	// one of its merchants, empty means all.
	ClientID     string
	ClientSecret secret.String
	Merchant     string
	// Kinds are the events to forward.
	Kinds []lending.EventKind
	// Forward is where to post them, signed with Secret.
	Forward string
	Secret  secret.String
	// Version is the version of this program.
	Version string
	// Lines gets one line per forwarded event, Notes everything else.
	Lines, Notes io.Writer

	// environment is the server's environment, empty if it names none.
	environment string
}

// event holds the fields of the feed's event object that are used here.
type event struct {
	UID       string  `json:"event_uid"`
	Sequence  int64   `json:"sequence"`
	Kind      string  `json:"event"`
	Subject   string  `json:"subject"`
	Merchant  string  `json:"merchant_uid"`
	Reference string  `json:"external_reference"`
	Timestamp string  `json:"timestamp"`
	Body      *string `json:"body"`
}

type page struct {
	Result struct {
		Data *struct {
			Events     []event `json:"events"`
			NextCursor string  `json:"next_cursor"`
		} `json:"data"`
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	} `json:"result"`
}

// refusal is an error that a retry would not change.
type refusal struct{ text string }

func (r refusal) Error() string { return r.text }

// Run follows the feed from now on until ctx ends, which is no error. It ends earlier
// only if the server refuses it for good.
func (r *Relay) Run(ctx context.Context) error {
	query := url.Values{"after": {"latest"}, "wait": {strconv.Itoa(waitSeconds)}}
	for _, kind := range r.Kinds {
		query.Add("event", string(kind))
	}
	for {
		var found page
		err := r.persist(ctx, "reading the feed", func() (err error) {
			found, err = r.read(ctx, query)
			return err
		})
		if err != nil {
			return unlessEnded(ctx, err)
		}
		if query.Get("after") == "latest" {
			fmt.Fprintf(r.Notes, "following %s from %s, forwarding to %s\n",
				r.BaseURL, found.Result.Data.NextCursor, r.Forward)
		}
		for _, event := range found.Result.Data.Events {
			if err := r.deliver(ctx, event); err != nil {
				return unlessEnded(ctx, err)
			}
		}
		query.Set("after", found.Result.Data.NextCursor)
	}
}

// unlessEnded returns err, or nil if it results from the end of ctx.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// deliver forwards one event, however long that takes, and prints its line.
func (r *Relay) deliver(ctx context.Context, event event) error {
	if event.Body == nil {
		fmt.Fprintf(r.Lines, "%s %s %s #%d left out: its body is not kept any more\n",
			event.Timestamp, event.Kind, event.Subject, event.Sequence)
		return nil
	}
	var status int
	err := r.persist(ctx, "forwarding "+event.UID, func() (err error) {
		status, err = r.forward(ctx, event)
		return err
	})
	if err == nil {
		fmt.Fprintf(r.Lines, "%s %s %s #%d -> %d\n",
			event.Timestamp, event.Kind, event.Subject, event.Sequence, status)
	}
	return err
}

// persist repeats work with growing pauses until it succeeds, is refused for good, or ctx
// ends.
func (r *Relay) persist(ctx context.Context, what string, work func() error) error {
	pause := minPause
	for {
		err := work()
		if err == nil || ctx.Err() != nil || errors.As(err, new(refusal)) {
			return err
		}
		fmt.Fprintf(r.Notes, "%s: %v; retrying in %s\n", what, err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, maxPause)
	}
}

func (r *Relay) read(ctx context.Context, query url.Values) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimRight(r.BaseURL, "/")+"/v2/events?"+query.Encode(), http.NoBody)
	if err != nil {
		return page{}, refusal{err.Error()}
	}
	request.Header.Set("x-service-client-id", r.ClientID)
	request.Header.Set("x-service-client-secret", r.ClientSecret.Reveal())
	if r.Merchant != "" {
		request.Header.Set("x-service-merchant-uid", r.Merchant)
	}
	response, err := client.Do(request)
	if err != nil {
		return page{}, err
	}
	defer response.Body.Close()
	var found page
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&found)
	switch {
	case err == nil && response.StatusCode == http.StatusOK && found.Result.Data != nil:
		r.environment = response.Header.Get(environmentHeader)
		return found, nil
	case err != nil || found.Result.Error == nil:
		// A proxy between here and the service has answered.
		return page{}, fmt.Errorf("the answer is %s and no page of the feed", response.Status)
	}
	text := fmt.Sprintf("the server answered %d %s: %s",
		response.StatusCode, found.Result.Error.Code, found.Result.Error.Message)
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return page{}, errors.New(text)
	}
	return page{}, refusal{text}
}

// forward posts one event and returns the status of the answer.
func (r *Relay) forward(ctx context.Context, event event) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	body := []byte(*event.Body)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Forward, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	// Lower-case names, as webhooks have them, are put into the map directly to be sent unchanged.
	request.Header["User-Agent"] = []string{""} // otherwise the library sends its own
	request.Header["content-type"] = []string{"application/json"}
	request.Header["user-agent"] = []string{"Drawbridge-Webhooks/" + r.Version}
	identity := sender.Identity{
		Kind: event.Kind, UID: event.UID, Sequence: event.Sequence, Merchant: event.Merchant,
		Subject: event.Subject, Reference: event.Reference,
	}
	for _, header := range identity.Headers() {
		request.Header[header.Name] = []string{header.Value}
	}
	if r.environment != "" {
		request.Header[environmentHeader] = []string{r.environment}
	}
	request.Header[sender.HeaderSignature] = []string{sender.Sign(r.Secret, body)}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // to reuse the connection
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return 0, fmt.Errorf("the receiver answered %s", response.Status)
	}
	return response.StatusCode, nil
}

// client follows no redirects: a webhook would not either, and credentials must go only
// to the address they are meant for.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
