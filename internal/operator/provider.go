package operator

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

const (
	// providerTimeout bounds each request to the provider.
	providerTimeout = 10 * time.Second
	// TicketLife is how long a sign-in may stay at the provider.
	TicketLife = 10 * time.Minute
	// providerSkew is how much the provider's clock may differ from ours.
	providerSkew = time.Minute
)

// ProviderConfig configures the OpenID Connect provider by which people may sign in.
type ProviderConfig struct {
	Issuer   string
	ClientID string
	Secret   secret.String
	// Name is the label of the button.
	Name string
	// Domains are the domains of addresses that may sign in without an invitation, as support; if
	// empty, only invited people may sign in.
	Domains []string
	// ReturnURL is the console page to which the provider redirects.
	ReturnURL string
}

// Provider signs people in by OpenID Connect, with the code flow and PKCE.
type Provider struct {
	ProviderConfig
	client *http.Client

	found atomic.Pointer[oidc.Provider]
}

// NewProvider returns a provider. Its endpoints are looked up at the first sign-in, so that it
// need not be up when the service starts.
func NewProvider(config ProviderConfig) *Provider {
	return &Provider{ProviderConfig: config, client: &http.Client{
		Timeout:       providerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Ticket holds what a sign-in must bring back. The browser keeps it.
type Ticket struct {
	State, Nonce, Verifier string
	Begun                  time.Time
	// Again means that the provider must ask for the password even if the person is signed in
	// there.
	Again bool
}

// Identity is a person's identity at the provider.
type Identity struct {
	Issuer, Subject string
	Email, Name     string
	// Verified means that the provider vouches for the address.
	Verified bool
	// ProvedAt is when the provider last authenticated the person; zero if it does not say.
	ProvedAt time.Time
}

// Start returns the address at the provider and the ticket that must come back. With again, the
// provider asks for the password even if the person is signed in there.
func (p *Provider) Start(ctx context.Context, again bool, now time.Time) (string, Ticket, error) {
	exchange, err := p.exchange(ctx)
	if err != nil {
		return "", Ticket{}, err
	}
	ticket := Ticket{
		State: secret.NewToken("").Reveal(), Nonce: secret.NewToken("").Reveal(),
		Verifier: oauth2.GenerateVerifier(), Begun: now, Again: again,
	}
	options := []oauth2.AuthCodeOption{
		oidc.Nonce(ticket.Nonce), oauth2.S256ChallengeOption(ticket.Verifier),
	}
	if again {
		// max_age makes the provider return auth_time.
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"),
			oauth2.SetAuthURLParam("max_age", "0"))
	}
	return exchange.AuthCodeURL(ticket.State, options...), ticket, nil
}

// Finish checks the provider's response. Error: UNAUTHORIZED if it does not belong to the
// ticket, if the provider does not vouch for it, or if the provider did not ask again although
// it had to.
func (p *Provider) Finish(
	ctx context.Context, ticket Ticket, state, code string, now time.Time,
) (Identity, error) {
	if now.Sub(ticket.Begun) > TicketLife {
		return Identity{}, errProvider(errors.New("too late"))
	}
	if ticket.State == "" || subtle.ConstantTimeCompare([]byte(ticket.State), []byte(state)) != 1 {
		return Identity{}, errProvider(errors.New("another state"))
	}
	exchange, err := p.exchange(ctx)
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), providerTimeout)
	defer cancel()
	tokens, err := exchange.Exchange(ctx, code, oauth2.VerifierOption(ticket.Verifier))
	if err != nil {
		return Identity{}, errProvider(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := p.found.Load().Verifier(&oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, errProvider(err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(ticket.Nonce)) != 1 {
		return Identity{}, errProvider(errors.New("another nonce"))
	}
	identity, err := identityOf(token)
	if err != nil {
		return Identity{}, errProvider(err)
	}
	asked := identity.ProvedAt // by the provider's clock
	if ticket.Again && (asked.IsZero() || asked.Before(ticket.Begun.Add(-providerSkew)) ||
		asked.After(now.Add(providerSkew))) {
		return Identity{}, lending.NewError(lending.CodeUnauthorized,
			"The provider did not confirm that it made you sign in again (claim auth_time). Confirm with "+
				"your password, or ask the provider's administrator to send that claim.")
	}
	return identity, nil
}

// identityOf reads the identity from a token.
func identityOf(token *oidc.IDToken) (Identity, error) {
	var claims struct {
		Email    string  `json:"email"`
		Verified bool    `json:"email_verified"`
		Name     string  `json:"name"`
		Username string  `json:"preferred_username"`
		AuthTime float64 `json:"auth_time"`
	}
	if err := token.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("reading the claims: %w", err)
	}
	identity := Identity{
		Issuer: token.Issuer, Subject: token.Subject, Email: normalEmail(claims.Email),
		Name: claims.Name, Verified: claims.Verified,
	}
	if claims.AuthTime > 0 {
		identity.ProvedAt = time.Unix(int64(claims.AuthTime), 0)
	}
	for _, name := range []string{claims.Username, identity.Email} {
		if strings.TrimSpace(identity.Name) == "" {
			identity.Name = name
		}
	}
	return identity, nil
}

// errProvider hides from the page what went wrong at the provider; the request log has it.
func errProvider(cause error) error {
	return lending.NewError(lending.CodeUnauthorized,
		"The sign-in was not completed. Begin again.").WithCause(cause)
}

// exchange looks up the provider's endpoints until that has succeeded once. Callers do not wait
// for each other's lookup: a provider that hangs would queue them all.
func (p *Provider) exchange(ctx context.Context) (*oauth2.Config, error) {
	found := p.found.Load()
	if found == nil {
		ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), providerTimeout)
		defer cancel()
		var err error
		if found, err = oidc.NewProvider(ctx, p.Issuer); err != nil {
			return nil, fmt.Errorf("asking the OpenID Connect provider for its addresses: %w", err)
		}
		p.found.Store(found)
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.Secret.Reveal(), RedirectURL: p.ReturnURL,
		Endpoint: found.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}, nil
}

// Admit returns the user of an identity: the user who has signed in with it before, else the
// invited user with its verified address, which is linked to the identity from then on, else a
// new user of an allowed domain, for whom created is true. Error: UNAUTHORIZED.
func (s *Service) Admit(
	ctx context.Context, tx *postgres.Tx, provider *Provider, identity Identity,
) (user User, created bool, err error) {
	var known []User
	err = tx.SelectContext(ctx, &known, `SELECT `+userColumns+` FROM users
		 WHERE provider_issuer = $1 AND provider_subject = $2
		    OR ($3 AND lower(email) = $4 AND provider_subject IS NULL)
		 ORDER BY provider_subject NULLS LAST
		   FOR UPDATE`, identity.Issuer, identity.Subject, identity.Verified, identity.Email)
	if err != nil {
		return User{}, false, fmt.Errorf("looking for a user of the provider: %w", err)
	}
	_, domain, _ := strings.Cut(identity.Email, "@")
	welcome := slices.ContainsFunc(provider.Domains, func(allowed string) bool {
		return strings.EqualFold(domain, allowed)
	})
	if len(known) == 0 && identity.Verified && welcome {
		name := identity.Name
		var unusable lending.FieldErrors
		if unusable.Name("name", name, maxUserName); len(unusable) > 0 {
			name = identity.Email
		}
		_, err = s.Create(ctx, tx, NewUser{
			Email: identity.Email, Name: name, Role: RoleSupport,
			Password: secret.NewToken("").Reveal(), // known to nobody
		})
		if lending.ErrorCode(err) == lending.CodeValidation {
			text := "The e-mail address of your account there cannot be used here. Ask an admin."
			if lending.IsTaken(err) { // the address belongs to a user with another identity
				text = "Your e-mail address belongs to another user of this console. Ask an admin."
			}
			return User{}, false, lending.NewError(lending.CodeUnauthorized, "%s", text).WithCause(err)
		}
		if err == nil {
			user, err = LockUser(ctx, tx, identity.Email)
		}
		if err != nil {
			return User{}, false, err
		}
		known, created = []User{user}, true
	}
	if len(known) == 0 || known[0].DisabledAt != nil {
		return User{}, false, lending.NewError(lending.CodeUnauthorized,
			"No user of this console has this account. Ask an admin to invite its address.")
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE users SET provider_issuer = $2, provider_subject = $3 WHERE user_uid = $1`,
		known[0].UID, identity.Issuer, identity.Subject)
	if err != nil {
		return User{}, false, fmt.Errorf("noting who %s is at the provider: %w", identity.Email, err)
	}
	return known[0], created, nil
}
