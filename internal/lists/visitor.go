// Package lists measures the console's list pages from the outside, over HTTP: each filter
// alone, pairs and triples of filters, the first page, the next one, and one deep in the list.
//
// The filters are read from the form of each page, so that a new filter is measured
// automatically; a text field without a value to type is an error. The values are those of
// package seed.
package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"
)

// ErrRefused marks an address that the console refuses because its filters exclude each other.
var ErrRefused = errors.New("the console refuses the filter")

// Visitor is a signed-in user of the console.
type Visitor struct {
	url       string
	client    *http.Client
	transport *http.Transport
}

// SignIn signs in to the console of the server at address with a password.
func SignIn(ctx context.Context, address, email, password string) (*Visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("making room for cookies: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	v := &Visitor{url: strings.TrimRight(address, "/"), transport: transport, client: &http.Client{
		Jar: jar, Timeout: time.Minute, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	form := url.Values{"email": {email}, "password": {password}}
	response, err := v.do(ctx, http.MethodPost, "/console/sign-in", form)
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	if response.StatusCode != http.StatusSeeOther {
		return nil, errors.New("the console refused the e-mail address and password")
	}
	return v, nil
}

// Uncompressed disables compression, which is cheaper if only the text of pages matters.
func (v *Visitor) Uncompressed() *Visitor {
	v.transport.DisableCompression = true
	return v
}

// Get returns the page at a path and query of the console. Error: ErrRefused
// when the server answers 400.
func (v *Visitor) Get(ctx context.Context, address string) (string, error) {
	response, err := v.do(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", address, err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", address, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return string(page), nil
	case http.StatusBadRequest:
		return "", fmt.Errorf("%s: %w", address, ErrRefused)
	}
	return "", fmt.Errorf("%s answered %s", address, response.Status)
}

func (v *Visitor) do(
	ctx context.Context, method, address string, form url.Values,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, v.url+address,
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return v.client.Do(request)
}
