package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/seed"
)

const (
	// uploadFiles of uploadFileSize are the most that one request may contain.
	uploadFiles    = 5
	uploadFileSize = 10 << 20
)

// upload measures the peak memory of the real program during the largest upload, compared with
// its memory when it is idle.
func (b *bench) upload(ctx context.Context, open *cleanup) error {
	b.say("upload: sending %d files of %d MiB", uploadFiles, uploadFileSize>>20)
	p, err := newProgram(ctx, b.cluster)
	if err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	open.add(p.stop)
	path := "/loan/" + p.demo.Loans[0].UID.String()
	// A first request, so that the idle program has already served one.
	if err := p.call(ctx, request{method: http.MethodGet, path: path}, nil); err != nil {
		return err
	}
	_, idle, err := p.memory()
	if err != nil {
		return err
	}
	body, kind, err := certificates(uploadFiles, uploadFileSize)
	if err != nil {
		return fmt.Errorf("writing certificates: %w", err)
	}
	err = p.call(ctx, request{
		method: http.MethodPost, path: path + "/completion-cert-upload", kind: kind,
		body: io.MultiReader(bytes.NewReader(body)), // hides the length, so the request is chunked
	}, nil)
	if err != nil {
		return err
	}
	_, after, err := p.memory()
	b.report.add(row{
		Section: "memory", Unit: "MiB", Value: after - idle, Floor: idle,
		Name:      fmt.Sprintf("grown by an upload of %d MiB", uploadFiles*uploadFileSize>>20),
		FloorName: "the idle program", Aim: "< 32 MiB",
	})
	return err
}

// start measures how long the real program takes from its start to the line that says it is
// ready, on a database with data, compared with printing its version.
func (b *bench) start(ctx context.Context, _ *cleanup) error {
	b.say("start: %d times", b.sizes.starts)
	p, err := newProgram(ctx, b.cluster)
	if err != nil {
		return err
	}
	var ready, floor timing
	for range b.sizes.starts {
		began := time.Now()
		if err := p.serve(ctx); err != nil {
			return err
		}
		ready.each = append(ready.each, time.Since(began))
		if err := p.stop(); err != nil {
			return err
		}
		began = time.Now()
		if _, err := p.run(ctx, "version"); err != nil {
			return err
		}
		floor.each = append(floor.each, time.Since(began))
	}
	b.report.addTimes(row{
		Section: "start on an existing database", Name: "to the ready line",
		FloorName: "printing its version",
	}, ready, floor, share{"p50", 0.5, ""}, share{"slowest", 1, "< 1000 ms"})
	return nil
}

// listed are pages of the console, each with its table, the table's key and a condition for the
// rows that it shows.
var listed = []struct{ name, path, table, key, where string }{
	{"deliveries", "/console/deliveries", "deliveries", "delivery_uid", "true"},
	{
		"deliveries that failed", "/console/deliveries?state=failed", "deliveries", "delivery_uid",
		"state = 'failed'",
	},
	{"applications", "/console/applications", "applications", "application_uid", "true"},
	{"e-mails", "/console/emails", "emails", "email_uid", "true"},
	{"subscriptions", "/console/subscriptions", "subscriptions", "subscription_uid", "true"},
}

// attemptsEach is how many attempts a seeded delivery has on average.
const attemptsEach = 1.5

// lists measures the console's lists in the real program, over HTTP with a signed-in session, on
// a database with many deliveries.
func (b *bench) lists(ctx context.Context, open *cleanup) error {
	b.say("lists: seeding %d deliveries", b.sizes.seeded)
	p, err := newProgram(ctx, b.cluster)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, p.url)
	if err != nil {
		return err
	}
	open.add(db.Close)
	_, err = seed.Fill(ctx, db, seed.Plan{
		Deliveries: b.sizes.seeded, Attempts: int(float64(b.sizes.seeded) * attemptsEach), Partners: 20,
	})
	if err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	open.add(p.stop)
	visitor, err := p.signIn(ctx)
	if err != nil {
		return err
	}
	for _, list := range listed {
		pages, err := drive(ctx, 1, b.sizes.visits, func(ctx context.Context, _, _ int) error {
			page, err := visitor.Get(ctx, list.path)
			if err == nil && !strings.Contains(page, "<tbody") {
				err = fmt.Errorf("%s is no list", list.path)
			}
			return err
		})
		if err != nil {
			return err
		}
		// A page has 50 rows and reads one more.
		//nolint:unqueryvet // the floor reads rows whole
		statement := fmt.Sprintf(`SELECT * FROM %s WHERE %s ORDER BY created_at DESC, %s DESC LIMIT 51`,
			list.table, list.where, list.key)
		rows, err := drive(ctx, 1, b.sizes.visits, func(ctx context.Context, _, _ int) error {
			return readAll(ctx, db, statement)
		})
		if err != nil {
			return err
		}
		b.report.addTimes(row{
			Section: fmt.Sprintf("lists of the console, %d deliveries", b.sizes.seeded),
			Name:    list.name, FloorName: "its rows by one statement",
		}, pages, rows, share{"p50", 0.5, ""}, share{"p95", 0.95, "< 100 ms"})
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
