package main

import (
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

type clientCmd struct {
	Create clientCreateCmd `cmd:"" help:"Issue API credentials; the secret is shown once."`
	List   clientListCmd   `cmd:"" help:"List clients, newest first."`
	Rotate clientRotateCmd `cmd:"" help:"Issue a new secret; the old one works on for a while."`
	Rate   clientRateCmd   `cmd:"" help:"Set how many requests a client may send."`
	Revoke clientRevokeCmd `cmd:"" help:"End a client for good, at once."`
}

// issuedJSON is a new client as commands print it, with its secret.
type issuedJSON struct {
	ID        string      `json:"client_id"`
	Secret    string      `json:"client_secret"`
	Group     bool        `json:"group"`
	Merchants []uuid.UUID `json:"merchant_uids"`
}

func newIssuedJSON(issued partner.Issued) issuedJSON {
	return issuedJSON{
		ID: issued.ClientID, Secret: issued.Secret, Group: issued.Group,
		Merchants: issued.MerchantUIDs,
	}
}

// clientJSON is a client as commands print it, without its secret.
type clientJSON struct {
	ID                 string      `json:"client_id"`
	Partner            uuid.UUID   `json:"partner_uid"`
	Group              bool        `json:"group"`
	Merchants          []uuid.UUID `json:"merchant_uids"`
	RatePerSecond      int         `json:"rate_per_second"`
	Burst              int         `json:"burst"`
	PreviousValidUntil *time.Time  `json:"previous_valid_until"`
	LastUsedAt         *time.Time  `json:"last_used_at"`
	RevokedAt          *time.Time  `json:"revoked_at"`
	CreatedAt          time.Time   `json:"created_at"`
}

func newClientJSON(c partner.Client) clientJSON {
	return clientJSON{
		ID: c.ID, Partner: c.PartnerUID, Group: c.Group, Merchants: c.MerchantUIDs,
		RatePerSecond: c.RatePerSecond, Burst: c.Burst,
		PreviousValidUntil: utc(c.PreviousValidUntil), LastUsedAt: utc(c.LastUsedAt),
		RevokedAt: utc(c.RevokedAt), CreatedAt: c.CreatedAt.UTC(),
	}
}

func printClient(w io.Writer, c partner.Client) {
	kind, state := "plain", "active"
	if c.Group {
		kind = "group"
	}
	if c.RevokedAt != nil {
		state = "revoked"
	}
	fmt.Fprintf(w, "%s  %-7s  %s  %d/s, burst %d  partner %s\n",
		c.ID, state, kind, c.RatePerSecond, c.Burst, c.PartnerUID)
}

type clientCreateCmd struct {
	Partner  string   `required:"" help:"Partner that gets the credentials." placeholder:"UID"`
	Merchant []string `sep:"none" help:"Merchant, repeatable; default: all." placeholder:"UID"`
	Group    bool     `help:"Act for several merchants; each request names one."`
	JSON     bool     `name:"json" help:"Print one JSON document."`
}

// Run issues credentials.
func (cmd clientCreateCmd) Run(env *environment) error {
	request := partner.NewClient{Group: cmd.Group}
	var err error
	if request.PartnerUID, err = parseUID("--partner", cmd.Partner); err != nil {
		return err
	}
	if request.MerchantUIDs, err = parseUIDs("--merchant", cmd.Merchant); err != nil {
		return err
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		issued, err := s.Partners.CreateClient(env.ctx, tx, request)
		if err != nil {
			return nil, byFlags(err)
		}
		printed := newIssuedJSON(issued)
		err = env.auditClient(s, tx, issued.ClientID, "client.create", map[string]any{
			"partner_uid": request.PartnerUID, "group": printed.Group,
			"merchant_uids": printed.Merchants,
		})
		return func() error {
			return env.print(cmd.JSON, printed, func(w io.Writer) {
				fmt.Fprintf(w, "client %s\n", printed.ID)
				printSecret(w, printed.Secret)
				for _, merchant := range printed.Merchants {
					fmt.Fprintf(w, "  merchant  %s\n", merchant)
				}
			})
		}, err
	})
}

func printSecret(w io.Writer, secret string) {
	fmt.Fprintf(w, "  secret    %s   (shown only now; keep it safe)\n", secret)
}

// auditClient notes what was done to a client; after must not hold its secret.
func (env *environment) auditClient(
	s *app.Services, tx *postgres.Tx, id, action string, after any,
) error {
	return s.Operators.Audit(env.ctx, tx, operator.Entry{
		Actor: cliActor, Action: action, SubjectKind: "client", Subject: id, After: after,
	})
}

type clientListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	Active  bool   `help:"Leave out revoked ones."`
	listFlags
}

// Run lists clients.
func (cmd clientListCmd) Run(env *environment) error {
	filter := partner.ClientFilter{WithoutRevoked: cmd.Active}
	var err error
	if filter.PartnerUID, err = optionalUID("--partner", cmd.Partner); err != nil {
		return err
	}
	if filter.Limit, filter.Cursor, err = cmd.page(); err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		found, next, err := s.Partners.ListClients(env.ctx, filter)
		if err != nil {
			return err
		}
		return listing[partner.Client, clientJSON]{
			"clients", found, newClientJSON, printClient,
		}.printPage(env, cmd.JSON, next)
	})
}

type clientRotateCmd struct {
	ID      string        `arg:"" name:"client-id" help:"Client."`
	Overlap time.Duration `default:"24h" help:"How long the old secret works on."`
	JSON    bool          `name:"json" help:"Print one JSON document."`
}

// rotatedJSON is a new secret as commands print it.
type rotatedJSON struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	// PreviousValidUntil is null if the old secret works no more.
	PreviousValidUntil *time.Time `json:"previous_valid_until"`
}

// Run rotates a secret.
func (cmd clientRotateCmd) Run(env *environment) error {
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		rotated, err := s.Partners.RotateClient(env.ctx, tx, cmd.ID, cmd.Overlap)
		if err != nil {
			return nil, byFlags(err)
		}
		until := utc(rotated.PreviousValidUntil)
		err = env.auditClient(s, tx, rotated.ClientID, "client.rotate",
			map[string]any{"previous_valid_until": until})
		printed := rotatedJSON{
			ID: rotated.ClientID, Secret: rotated.Secret, PreviousValidUntil: until,
		}
		return func() error {
			return env.print(cmd.JSON, printed, func(w io.Writer) {
				fmt.Fprintf(w, "client %s\n", printed.ID)
				printSecret(w, printed.Secret)
				if until != nil {
					fmt.Fprintf(w, "  the old secret works until %s\n", until.Format(time.RFC3339))
				}
			})
		}, err
	})
}

type clientRateCmd struct {
	ID    string `arg:"" name:"client-id" help:"Client."`
	Rate  int    `required:"" help:"Requests per second in the long run." placeholder:"N"`
	Burst int    `required:"" help:"Requests at once." placeholder:"N"`
	JSON  bool   `name:"json" help:"Print one JSON document."`
}

// Run sets a client's limits.
func (cmd clientRateCmd) Run(env *environment) error {
	return env.changeClient(cmd.JSON, cmd.ID, func(s *app.Services, tx *postgres.Tx) error {
		if err := s.Partners.SetRate(env.ctx, tx, cmd.ID, cmd.Rate, cmd.Burst); err != nil {
			return byFlags(err)
		}
		return env.auditClient(s, tx, cmd.ID, "client.rate",
			map[string]any{"rate_per_second": cmd.Rate, "burst": cmd.Burst})
	})
}

type clientRevokeCmd struct {
	ID   string `arg:"" name:"client-id" help:"Client."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run revokes a client.
func (cmd clientRevokeCmd) Run(env *environment) error {
	return env.changeClient(cmd.JSON, cmd.ID, func(s *app.Services, tx *postgres.Tx) error {
		if err := s.Partners.RevokeClient(env.ctx, tx, cmd.ID); err != nil {
			return err
		}
		return env.auditClient(s, tx, cmd.ID, "client.revoke", nil)
	})
}

// changeClient runs a use case about a client and prints what became of it.
func (env *environment) changeClient(
	asJSON bool, id string, use func(s *app.Services, tx *postgres.Tx) error,
) error {
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		err := use(s, tx)
		return func() error {
			client, err := s.Partners.Client(env.ctx, id)
			if err != nil {
				return err
			}
			return env.print(asJSON, newClientJSON(client), func(w io.Writer) {
				printClient(w, client)
			})
		}, err
	})
}
