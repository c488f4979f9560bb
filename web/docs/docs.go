// Package docs is the partner documentation that the binary serves at /docs:
// the OpenAPI document, the pages rendered from it, the guides, the quick
// start, signature checking samples and a request collection to download.
//
// openapi.yaml is the single source. The reference, the error table, the webhook events,
// the JSON Schemas of the events, the curl commands and the collection are all generated
// from it, so that they cannot contradict it. Prose is in guides/ as Markdown, and the
// commands of the quick start in quickstart.yaml, where a test can execute exactly what the
// page prints.
//
// Package contracttest below checks requests and answers of a running server against the
// same document. It is for tests, and keeps the validating library out of the binary.
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
	// BaseURL returns the address that precedes /v2, without a trailing slash (specification
	// section 1). It is called once, at the first request, when a server on port 0 knows its
	// address. Nil means ExampleBaseURL.
	BaseURL func() string
	// Environment is production, sandbox or development, the default. Production omits the
	// hints that only make sense with a sandbox.
	Environment string
	// Currency is the ISO 4217 code of every amount; empty means ExampleCurrency.
	Currency string
	// Egress are the networks that webhooks come from; nil lists none.
	Egress []netip.Prefix
	// Webhooks is the timing of deliveries; nil means the timing in the guides.
	Webhooks *Timing
	// Keys returns the keys that verify statements, the signing one first; nil means none.
	Keys func(ctx context.Context) ([]statement.Key, error)
}

// The environments' names on the pages.
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
