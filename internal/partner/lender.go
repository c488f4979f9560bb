package partner

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Scope is a group of actions permitted to one of the lender's systems (decisions section 10).
type Scope string

// The scopes of the lender's systems.
const (
	ScopeRead         Scope = "read"
	ScopeApplications Scope = "applications"
	ScopeDocuments    Scope = "documents"
	ScopeTasks        Scope = "tasks"
	ScopeFunding      Scope = "funding"
)

// Scopes lists every scope once.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopeApplications, ScopeDocuments, ScopeTasks, ScopeFunding}
}

// The bounds of a client of the lender's systems.
const (
	maxClientName = 100
	maxNetworks   = 50
)

// NewLenderClient is the input of CreateLenderClient.
type NewLenderClient struct {
	// Name is the client's name in the audit log.
	Name   string
	Scopes []string
	// From are the networks that it may call from, such as 203.0.113.0/24 or a single address;
	// empty for any.
	From []string
}

// System holds what a client of the lender's systems has beyond a partner's client.
type System struct {
	Name   string    `db:"name"`
	Scopes scopeList `db:"scopes"`
	// From are the networks that it may call from, empty for any.
	From networkList `db:"networks"`
}

// systemColumns are the columns of System.
const systemColumns = `coalesce(c.name, '') AS name, c.scopes, c.networks`

// IsLender reports whether the client is one of the lender's systems, not a partner's.
func (s System) IsLender() bool { return len(s.Scopes) > 0 }

// allows reports whether a request may come from an address.
func (s System) allows(address netip.Addr) bool {
	return len(s.From) == 0 || slices.ContainsFunc(s.From, func(network netip.Prefix) bool {
		return network.Contains(address.Unmap())
	})
}

// scopeList is a column of scopes.
type scopeList []Scope

// Scan reads the column, nil for NULL.
func (l *scopeList) Scan(source any) error {
	var texts pq.StringArray
	if err := texts.Scan(source); err != nil {
		return fmt.Errorf("reading scopes: %w", err)
	}
	*l = nil
	for _, text := range texts {
		*l = append(*l, Scope(text))
	}
	return nil
}

// Value writes the column.
func (l scopeList) Value() (driver.Value, error) { return pq.Array([]Scope(l)).Value() }

// networkList is a column of type cidr[].
type networkList []netip.Prefix

// Scan reads the column.
func (l *networkList) Scan(source any) error {
	var texts pq.StringArray
	if err := texts.Scan(source); err != nil {
		return fmt.Errorf("reading networks: %w", err)
	}
	*l = make(networkList, 0, len(texts))
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("reading a network: %w", err)
		}
		*l = append(*l, network)
	}
	return nil
}

// Value writes the column.
func (l networkList) Value() (driver.Value, error) {
	texts := make(pq.StringArray, 0, len(l))
	for _, network := range l {
		texts = append(texts, network.String())
	}
	return texts.Value()
}

// parse checks the request. Error: VALIDATION_ERROR naming name, scope and from.
func (n NewLenderClient) parse() (System, error) {
	var errs lending.FieldErrors
	made := System{From: networkList{}}
	made.Name = errs.Name("name", n.Name, maxClientName)
	if len(n.Scopes) == 0 {
		errs.Add("scope", `"scope" is required: at least one of %s`, lending.JoinNames(Scopes()))
	}
	for _, name := range n.Scopes {
		scope := Scope(name)
		if !slices.Contains(Scopes(), scope) {
			errs.Add("scope", `"scope" must be one of: %s`, lending.JoinNames(Scopes()))
		} else if !slices.Contains(made.Scopes, scope) {
			made.Scopes = append(made.Scopes, scope)
		}
	}
	if len(n.From) > maxNetworks {
		errs.Add("from", `"from" may be given at most %d times`, maxNetworks)
		n.From = nil
	}
	for _, text := range n.From {
		network, err := parseNetwork(text)
		if err != nil {
			errs.Add("from", `"from" must be networks such as 203.0.113.0/24; %.60s is not one`, text)
		} else if !slices.Contains(made.From, network) {
			made.From = append(made.From, network)
		}
	}
	return made, errs.Err()
}

// parseNetwork parses a network; a single address is a network of one.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().WithZone("").Prefix(address.Unmap().BitLen())
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if network.Addr().Is4In6() {
		if network.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%s is wider than IPv4", network)
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network.Masked(), nil
}

// CreateLenderClient issues credentials to one of the lender's systems. Error:
// VALIDATION_ERROR.
func (s *Service) CreateLenderClient(
	ctx context.Context, tx *postgres.Tx, request NewLenderClient,
) (Issued, error) {
	made, err := request.parse()
	if err != nil {
		return Issued{}, err
	}
	credentials := Credentials{ClientID: clientID(postgres.NewUID(tx.Now)), Secret: newSecret()}
	hash := hashSecret(credentials.Secret)
	_, err = tx.ExecContext(ctx, `
		INSERT INTO clients (client_id, is_group, secret_hash, rate_per_second, rate_burst,
		                     created_at, secret_hint, name, scopes, networks)
		VALUES ($1, false, $2, $3, $4, $5, $6, $7, $8, $9::text[]::cidr[])`,
		credentials.ClientID, hash[:], DefaultRatePerSecond, DefaultBurst, tx.Now,
		hint(credentials.Secret), made.Name, made.Scopes, made.From)
	if err != nil {
		return Issued{}, fmt.Errorf("inserting client %s: %w", credentials.ClientID, err)
	}
	return Issued{Credentials: credentials, MerchantUIDs: []uuid.UUID{}, System: made}, nil
}
