// Package docs is the partner documentation that the binary serves at /docs:
// the OpenAPI document, the pages rendered from it, the guides, the quick
// start, signature checking samples and a request collection to download.
//
// openapi.yaml is the one source. The reference, the error table, the webhook
// events, the JSON Schemas of the events, the curl commands and the collection
// are all made from it, so that none of them can say something else. Prose
// lives in guides/ as Markdown, the commands of the quick start in
// quickstart.yaml, where a test can execute exactly what the page prints.
//
// Package contracttest, below this one, holds requests and answers of a running
// server against the same document. It is for tests, and keeps the validating
// library out of the binary.
package docs

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"

	"drawbridge/internal/statement"
)

// Prefix is the path under which the handlers expect to be mounted.
const Prefix = "/docs"

// Options configure a Site. The zero value serves the address of the examples.
type Options struct {
	// BaseURL answers the address that precedes /v2, without a trailing slash
	// (specification section 1). It is asked once, at the first request, when a
	// server on port 0 knows its address. Nil is ExampleBaseURL.
	BaseURL func() string
	// Environment is production, sandbox or development, which empty means. Production leaves
	// out the hints that only make sense beside a sandbox.
	Environment string
	// Currency is that of every amount, by its ISO 4217 code; empty is ExampleCurrency.
	Currency string
	// Egress are the networks that webhooks come from; empty names none.
	Egress []netip.Prefix
	// Webhooks is how deliveries are timed; nil is as the guides are written.
	Webhooks *Timing
	// Keys are those that verify statements, the one that signs first; nil has none.
	Keys func(ctx context.Context) ([]statement.Key, error)
}

// Environments as the pages name them.
const production, development = "production", "development"

// ExampleBaseURL is the address that openapi.yaml is written with.
const ExampleBaseURL = "http://127.0.0.1:8080/api"

// ExampleCurrency is the currency that openapi.yaml and the guides are written with.
const ExampleCurrency = "USD"

// Site renders each page and file once and serves it from memory.
type Site struct {
	build func() (*library, error)
	keys  func(ctx context.Context) ([]statement.Key, error)
}

// New returns a Site. Nothing is rendered before the first request.
func New(options Options) *Site {
	return &Site{keys: options.Keys, build: sync.OnceValues(func() (*library, error) {
		options.Environment = cmp.Or(options.Environment, development)
		options.Currency = cmp.Or(options.Currency, ExampleCurrency)
		built, err := newLibrary(options)
		if err != nil {
			return nil, fmt.Errorf("rendering the documentation: %w", err)
		}
		return built, nil
	})}
}
