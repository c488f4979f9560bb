package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// visitor is somebody signed in to the console.
type visitor struct {
	url    string
	client *http.Client
}

func signIn(ctx context.Context, o options) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("making room for cookies: %w", err)
	}
	v := &visitor{url: strings.TrimRight(o.url, "/"), client: &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	form := url.Values{"email": {o.email}, "password": {o.password}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url+"/console/sign-in",
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := v.client.Do(request)
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

// get returns a page, which must be a whole one.
func (v *visitor) get(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+address, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", address, err)
	}
	response, err := v.client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking for %s: %w", address, err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answered %s", address, response.Status)
	}
	return string(page), nil
}

// list is a page of the console and the filters of its address.
type list struct {
	path string
	// filters are values by parameter; those of choose come from the page's own
	// lists, the first and the last of each.
	filters map[string][]string
	choose  []string
}

var lists = []list{
	{
		path: "/console/deliveries",
		filters: map[string][]string{
			"state": {"failed", "retrying", "pending", "delivered", "cancelled"},
			"event": {"application.status.update", "task.updated", "application.amount.update"},
			"code":  {"503", "404", "5xx", "2xx", "202", "204", "299"},
			"error": {"timeout", "dns", "http_4xx", "unknown"}, "test": {"yes", "no"},
			"resend": {"yes", "no"}, "slow": {"yes"}, "range": {"24h", "30d"},
		},
		choose: []string{"partner", "merchant", "subscription"},
	},
	{
		path:    "/console/applications",
		filters: map[string][]string{"status": {"Approved", "Declined"}},
		choose:  []string{"partner", "merchant"},
	},
	{
		path: "/console/emails",
		filters: map[string][]string{
			"state": {"sent", "failed"}, "kind": {"welcome", "task"},
		},
	},
	{path: "/console/subscriptions", filters: map[string][]string{"state": {"active", "failing"}}},
}

// addresses are the list without a filter, under each, under every pair of two
// parameters, and under some of three.
func (l list) addresses(ctx context.Context, v *visitor, triples int) ([]string, error) {
	page, err := v.get(ctx, l.path)
	if err != nil {
		return nil, err
	}
	values := maps.Clone(l.filters)
	if values == nil {
		values = map[string][]string{}
	}
	for _, name := range l.choose {
		if found := choices(page, name); len(found) > 0 {
			values[name] = []string{found[0], found[len(found)/2], found[len(found)-1]}
		}
	}
	var singles []url.Values
	for name, all := range values {
		for _, value := range all {
			singles = append(singles, url.Values{name: {value}})
		}
	}
	found := map[string]bool{l.path: true}
	for i, one := range singles {
		found[l.path+"?"+one.Encode()] = true
		for _, other := range singles[i+1:] {
			if both := merged(one, other); len(both) == 2 {
				found[l.path+"?"+both.Encode()] = true
			}
		}
	}
	for range triples {
		three := url.Values{}
		for range 3 {
			three = merged(three, singles[rand.IntN(len(singles))]) //nolint:gosec // nothing to guess
		}
		found[l.path+"?"+three.Encode()] = true
	}
	var addresses []string
	for address := range found {
		addresses = append(addresses, address)
	}
	return addresses, nil
}

func merged(a, b url.Values) url.Values {
	both := url.Values{}
	for _, each := range []url.Values{a, b} {
		maps.Copy(both, each)
	}
	return both
}

var optionValue = regexp.MustCompile(`<option value="([0-9a-f-]{36})"`)

// choices are the ids that a filter's list offers.
func choices(page, name string) []string {
	_, rest, ok := strings.Cut(page, `<select class="input" id="filter-`+name+`"`)
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "</select>")
	var found []string
	for _, match := range optionValue.FindAllStringSubmatch(rest, -1) {
		found = append(found, match[1])
	}
	return found
}
