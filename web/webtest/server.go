// Package webtest runs the whole partner API for tests: real HTTP on a socket,
// a real database of the test's own, every exchange held against the OpenAPI
// document. Each test states what it sent, what came back, and exactly which
// events and e-mails resulted.
package webtest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/event"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
	"drawbridge/web"
	"drawbridge/web/api"
	"drawbridge/web/docs/contract"
)

// BasePath is the path before /v2 of a test server.
const BasePath = "/api"

// Server is a partner API with one partner, its merchant and a client.
type Server struct {
	T  testing.TB
	DB *postgres.DB
	// URL precedes /v2.
	URL string
	// Folder is where uploads are kept.
	Folder string

	API      *api.API
	Partners *partner.Service
	Webhooks *webhook.Service
	Contract *contract.Contract

	// Home is the partner of most tests.
	Home Account
	// Products are the products by code.
	Products map[string]uuid.UUID

	client   *http.Client
	requests recorded
}

// Account is a partner with one merchant and its credentials.
type Account struct {
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	ClientID    string
	Secret      string
}

// New starts a server that stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	return Start(t, pgtest.New(t))
}

// Start starts another server on a database that is in use already, as a
// second machine would be.
func Start(t testing.TB, db *postgres.DB) *Server {
	t.Helper()
	s := &Server{
		T: t, DB: db, Folder: t.TempDir(), Products: map[string]uuid.UUID{},
		requests: make(recorded, recordedCalls),
	}
	s.wire()
	listener := httptest.NewServer(web.New(web.Options{
		API: s.API, BasePath: BasePath, Now: db.Now, Requests: s.requests,
		Metrics: http.NotFoundHandler(),
		Ready:   func(*http.Request) []string { return nil },
	}))
	t.Cleanup(listener.Close)
	s.URL = listener.URL + BasePath
	var err error
	s.Contract, err = contract.Load(s.URL)
	s.must(err)
	s.client = &http.Client{
		Transport: s.Contract.Transport(t, listener.Client().Transport), Timeout: time.Minute,
	}
	return s
}

// wire makes the services over the test's database.
func (s *Server) wire() {
	s.T.Helper()
	jobs, err := river.NewClient(riverdatabasesql.New(s.DB.DB.DB), &river.Config{})
	s.must(err)
	bucket, err := document.OpenBucket("file://" + s.Folder)
	s.must(err)
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	s.must(err)
	s.Webhooks = &webhook.Service{DB: s.DB, Jobs: jobs, Keys: keys}
	events := &event.Recorder{Webhooks: s.Webhooks, Emails: email.NewService(jobs)}
	loans := &loan.Service{DB: s.DB, Events: events}
	s.Partners = &partner.Service{DB: s.DB}
	s.API = &api.API{
		Partners:    s.Partners,
		Limiter:     &partner.Limiter{DB: s.DB},
		Idempotency: &idempotency.Store{DB: s.DB},
		Applications: &application.Service{
			DB: s.DB, Events: events, Loans: loans, Products: &catalog.Service{DB: s.DB},
			Switches: true,
		},
		Loans:   loans,
		Bucket:  bucket,
		Calls:   &s.Webhooks.Calls,
		Now:     s.DB.Now,
		Sandbox: true,
	}
}

// Furnish adds the partner Home and the products, as the first server of a
// database does.
func (s *Server) Furnish() *Server {
	s.T.Helper()
	s.Home = s.NewAccount("Home")
	products := &catalog.Service{DB: s.DB}
	for _, wanted := range []catalog.NewProduct{
		{Code: "P100", Schedule: "100", Fee: "0"},
		{Code: "P5050", Schedule: "50,50", Fee: "2.5"},
		{Code: "P404020", Schedule: "40,40,20", Fee: "3.75"},
		{Code: "P3333", Schedule: "33.33,33.33,33.34", Fee: "1.25"},
	} {
		wanted.Name, wanted.Term, wanted.Rate = wanted.Code, "120", "7.99"
		wanted.Min, wanted.Max = "1000.00", "100000.00"
		s.InTx(func(tx *postgres.Tx) error {
			product, err := products.Create(s.T.Context(), tx, wanted)
			if err == nil {
				s.Products[wanted.Code] = uuid.MustParse(product.UID)
			}
			return err
		})
	}
	return s
}

// NewAccount adds a partner with one merchant and a client whose rate no test
// reaches by accident.
func (s *Server) NewAccount(name string) Account {
	s.T.Helper()
	var account Account
	s.InTx(func(tx *postgres.Tx) error {
		made, err := s.Partners.CreatePartner(s.T.Context(), tx, name)
		if err != nil {
			return err
		}
		merchant, err := s.Partners.CreateMerchant(s.T.Context(), tx, made.UID, name)
		if err != nil {
			return err
		}
		issued, err := s.Partners.CreateClient(s.T.Context(), tx,
			partner.NewClient{PartnerUID: made.UID})
		if err != nil {
			return err
		}
		account = Account{
			PartnerUID: made.UID, MerchantUID: merchant.UID,
			ClientID: issued.ClientID, Secret: issued.Secret,
		}
		return s.Partners.SetRate(s.T.Context(), tx, issued.ClientID, 10_000, 20_000)
	})
	return account
}

// InTx runs use in a transaction and ends the test when it fails.
func (s *Server) InTx(use func(tx *postgres.Tx) error) {
	s.T.Helper()
	s.must(s.DB.InTx(s.T.Context(), use))
}

func (s *Server) must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}
