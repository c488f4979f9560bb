package apptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/catalog"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/web"
	"drawbridge/web/api"
	"drawbridge/web/docs/contracttest"
)

// BasePath is the path before /v2 of a test server.
const BasePath = "/api"

// recordedCalls is how many log entries of requests are kept for tests to read.
const recordedCalls = 1000

// Server is a partner API for tests: real HTTP on a socket, every exchange checked against the
// OpenAPI document.
type Server struct {
	*Harness

	T testing.TB
	// URL precedes /v2.
	URL string
	// Folder is where uploads are kept.
	Folder string

	API      *api.API
	Contract *contracttest.Contract

	// Home is the partner of most tests.
	Home Account
	// Products are the products by code.
	Products map[string]uuid.UUID

	client   *http.Client
	bare     *http.Client
	requests recorded
}

// Account is a partner with one merchant and its credentials.
type Account struct {
	PartnerUID  uuid.UUID
	MerchantUID uuid.UUID
	ClientID    string
	Secret      string
}

// NewServer starts a server that stops with the test. Variables are names and values in turn.
func NewServer(t testing.TB, variables ...string) *Server {
	t.Helper()
	return StartServer(t, pgtest.New(t), variables...)
}

// StartServer starts another server on a database that is in use already, as a
// second machine would be.
func StartServer(t testing.TB, db *postgres.DB, variables ...string) *Server {
	t.Helper()
	s := &Server{
		T: t, Folder: t.TempDir(), Products: map[string]uuid.UUID{},
		requests: make(recorded, recordedCalls),
	}
	s.Harness = On(t, db, append([]string{
		"DRAWBRIDGE_ROLES", "api", "DRAWBRIDGE_BLOB_URL", "file://" + s.Folder,
	}, variables...)...)
	options, err := s.WebOptions()
	s.must(err)
	options.Requests, options.Metrics = s.requests, http.NotFoundHandler()
	s.API = options.API
	listener := httptest.NewServer(web.New(options))
	t.Cleanup(listener.Close)
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var following sync.WaitGroup
	following.Go(func() { s.Feed.Run(running) })
	t.Cleanup(func() {
		stop()
		following.Wait()
	})
	s.URL = listener.URL + BasePath
	s.Contract, err = contracttest.Load(s.URL)
	s.must(err)
	s.bare = &http.Client{Transport: listener.Client().Transport, Timeout: time.Minute}
	s.client = &http.Client{
		Transport: s.Contract.Transport(t, listener.Client().Transport), Timeout: time.Minute,
	}
	return s
}

// Furnish adds the partner Home and the products, as the first server of a
// database does.
func (s *Server) Furnish() *Server {
	s.T.Helper()
	s.Home = s.NewAccount("Home")
	for _, wanted := range []catalog.NewProduct{
		{Code: "P100", Schedule: "100", Fee: "0"},
		{Code: "P5050", Schedule: "50,50", Fee: "2.5"},
		{Code: "P404020", Schedule: "40,40,20", Fee: "3.75"},
		{Code: "P3333", Schedule: "33.33,33.33,33.34", Fee: "1.25"},
	} {
		wanted.Name, wanted.Term, wanted.Rate = wanted.Code, "120", "7.99"
		wanted.Min, wanted.Max = "1000.00", "100000.00"
		s.InTx(func(tx *postgres.Tx) error {
			product, err := s.Catalog.Create(s.T.Context(), tx, wanted)
			if err == nil {
				s.Products[wanted.Code] = uuid.MustParse(product.UID)
			}
			return err
		})
	}
	return s
}

// NewAccount adds a partner with one merchant and a client whose rate limit no test reaches by
// accident.
func (s *Server) NewAccount(name string) Account {
	s.T.Helper()
	var account Account
	s.InTx(func(tx *postgres.Tx) error {
		made, err := s.Partners.CreatePartner(s.T.Context(), tx, name, "")
		if err != nil {
			return err
		}
		merchant, err := s.Partners.CreateMerchant(s.T.Context(), tx, made.UID, name)
		if err != nil {
			return err
		}
		account, err = s.issue(tx, partner.NewClient{PartnerUID: made.UID})
		account.MerchantUID = merchant.UID
		return err
	})
	return account
}

// NewGroup adds a partner with merchants, each of which has its own client, and the group's client,
// which may act for all of them.
func (s *Server) NewGroup(name string, count int) (group Account, members []Account) {
	s.T.Helper()
	s.InTx(func(tx *postgres.Tx) error {
		made, err := s.Partners.CreatePartner(s.T.Context(), tx, name, "")
		if err != nil {
			return err
		}
		for range count {
			merchant, err := s.Partners.CreateMerchant(s.T.Context(), tx, made.UID, name)
			if err != nil {
				return err
			}
			member, err := s.issue(tx, partner.NewClient{
				PartnerUID: made.UID, MerchantUIDs: []uuid.UUID{merchant.UID},
			})
			if err != nil {
				return err
			}
			member.MerchantUID = merchant.UID
			members = append(members, member)
		}
		group, err = s.issue(tx, partner.NewClient{PartnerUID: made.UID, Group: true})
		return err
	})
	return group, members
}

// NewSibling adds another merchant to the partner of an account, with its own client and a group's
// client that may act for no other merchant.
func (s *Server) NewSibling(of Account) (plain, group Account) {
	s.T.Helper()
	s.InTx(func(tx *postgres.Tx) error {
		merchant, err := s.Partners.CreateMerchant(s.T.Context(), tx, of.PartnerUID, "Sibling")
		if err != nil {
			return err
		}
		request := partner.NewClient{
			PartnerUID: of.PartnerUID, MerchantUIDs: []uuid.UUID{merchant.UID},
		}
		if plain, err = s.issue(tx, request); err != nil {
			return err
		}
		request.Group = true
		group, err = s.issue(tx, request)
		plain.MerchantUID, group.MerchantUID = merchant.UID, merchant.UID
		return err
	})
	return plain, group
}

// issue adds a client whose rate limit no test reaches by accident.
func (s *Server) issue(tx *postgres.Tx, request partner.NewClient) (Account, error) {
	issued, err := s.Partners.CreateClient(s.T.Context(), tx, request)
	if err != nil {
		return Account{}, err
	}
	account := Account{
		PartnerUID: request.PartnerUID, ClientID: issued.ClientID, Secret: issued.Secret,
	}
	return account, s.Partners.SetRate(s.T.Context(), tx, issued.ClientID, 10_000, 20_000)
}

// NewSystem adds one of the lender's own systems.
func (s *Server) NewSystem(name string, scopes ...partner.Scope) Account {
	s.T.Helper()
	var account Account
	s.InTx(func(tx *postgres.Tx) error {
		request := partner.NewLenderClient{Name: name}
		for _, scope := range scopes {
			request.Scopes = append(request.Scopes, string(scope))
		}
		issued, err := s.Partners.CreateLenderClient(s.T.Context(), tx, request)
		if err != nil {
			return err
		}
		account = Account{ClientID: issued.ClientID, Secret: issued.Secret}
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
	must(s.T, err)
}

// recorded keeps the log entries of the requests, oldest first.
type recorded chan apilog.Entry

// Record keeps an entry while there is room.
func (r recorded) Record(entry apilog.Entry) {
	select {
	case r <- entry:
	default:
	}
}

// Recorded returns the log entry of the oldest request that it has not returned yet. The entry is
// written after the response, so Recorded waits for it.
func (s *Server) Recorded() apilog.Entry {
	s.T.Helper()
	return waittest.Receive(s.T, "the record of a request", s.requests)
}
