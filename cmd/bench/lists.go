package main

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

	"drawbridge/internal/postgres"
	"drawbridge/internal/seed"
)

// listed are pages of the console, each with the statement that reads their rows
// and nothing else.
var listed = []struct{ name, path, rows string }{
	{"deliveries", "/console/deliveries", newestDeliveries},
	{"deliveries that failed", "/console/deliveries?state=failed", failedDeliveries},
	{"applications", "/console/applications", newestApplications},
	{"e-mails", "/console/emails", newestEmails},
	{"subscriptions", "/console/subscriptions", newestSubscriptions},
}

// Each list has 50 rows a page and looks for one more.
//
//nolint:unqueryvet // the floor reads rows whole
const (
	newestDeliveries = `
		SELECT * FROM deliveries ORDER BY created_at DESC, delivery_uid DESC LIMIT 51`
	failedDeliveries = `
		SELECT * FROM deliveries
		 WHERE state = 'failed' ORDER BY created_at DESC, delivery_uid DESC LIMIT 51`
	newestApplications = `
		SELECT * FROM applications ORDER BY created_at DESC, application_uid DESC LIMIT 51`
	newestEmails = `
		SELECT * FROM emails ORDER BY created_at DESC, email_uid DESC LIMIT 51`
	newestSubscriptions = `
		SELECT * FROM subscriptions ORDER BY created_at DESC, subscription_uid DESC LIMIT 51`
)

// attemptsEach is how many attempts a seeded delivery has on average.
const attemptsEach = 1.5

// lists measures the console's lists in the real program, over HTTP by somebody
// who is signed in, on a database with many deliveries.
func (b *bench) lists(ctx context.Context) (err error) {
	b.say("lists: building the program, seeding %d deliveries", b.sizes.seeded)
	p, err := b.program(ctx)
	if err != nil {
		return err
	}
	demo, err := p.demo(ctx)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, p.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = seed.Fill(ctx, db, seed.Plan{
		Deliveries: b.sizes.seeded, Attempts: int(float64(b.sizes.seeded) * attemptsEach), Partners: 20,
	})
	if err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	client, err := p.signIn(ctx, demo)
	if err != nil {
		return err
	}
	for _, list := range listed {
		pages, err := drive(ctx, 1, b.sizes.visits, func(ctx context.Context, _, _ int) error {
			return visit(ctx, client, p.origin+list.path)
		})
		if err != nil {
			return err
		}
		rows, err := drive(ctx, 1, b.sizes.visits, func(ctx context.Context, _, _ int) error {
			return readAll(ctx, db, list.rows)
		})
		if err != nil {
			return err
		}
		b.reportList(list.name, pages, rows)
	}
	return nil
}

func (b *bench) reportList(name string, pages, rows timing) {
	for _, share := range []struct {
		name string
		q    float64
		aim  string
	}{{"p50", 0.5, ""}, {"p95", 0.95, "< 100 ms"}} {
		b.report.add(row{
			Section: fmt.Sprintf("lists of the console, %d deliveries", b.sizes.seeded),
			Name:    name + ", " + share.name, Unit: "ms",
			Value: milliseconds(pages.quantile(share.q)), Floor: milliseconds(rows.quantile(share.q)),
			FloorName: "its rows by one statement", Aim: share.aim,
		})
	}
}

// signIn returns a client with the session of the first demo user.
func (p *program) signIn(ctx context.Context, demo demoData) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, fmt.Errorf("making room for cookies: %w", err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	form := url.Values{"email": {demo.Users[0].Email}, "password": {demo.Users[0].Password}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.origin+"/console/sign-in",
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	request.Header.Set("content-type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("signing in: %w", err)
	}
	defer response.Body.Close()
	if response.Request.URL.Path != "/console" {
		return nil, fmt.Errorf("signing in led to %s (%s)", response.Request.URL.Path, response.Status)
	}
	return client, nil
}

// visit asks for a page, which must be a list with rows.
func visit(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", address, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", address, err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(string(page), "<tbody") {
		return fmt.Errorf("%s answered %s without a list", address, response.Status)
	}
	return nil
}

// readAll runs a query and takes every row from the connection.
func readAll(ctx context.Context, db *postgres.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("reading rows: %w", err)
	}
	defer rows.Close()
	count := 0
	for rows.Next() {
		count++
	}
	if rows.Err() == nil && count == 0 {
		return fmt.Errorf("there are no rows to measure in: %s", query)
	}
	return rows.Err()
}
