package main

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
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
	Rotate clientRotateCmd `cmd:"" help:"Issue a new secret; the old one keeps working for a while."`
	Rate   clientRateCmd   `cmd:"" help:"Set how many requests a client may send."`
	Revoke clientRevokeCmd `cmd:"" help:"Revoke a client for good, at once."`
}

// issuedJSON is a new client as commands print it, with its secret.
type issuedJSON struct {
	ID        string      `json:"client_id"`
	Secret    string      `json:"client_secret"`
	Group     bool        `json:"group"`
	Merchants []uuid.UUID `json:"merchant_uids"`
	// Nil for a partner's client, whose document then lacks these fields.
	*systemJSON
}

// systemJSON has the fields that only a client of the lender's own systems has.
type systemJSON struct {
	// Name is null for a partner's client.
	Name   *string         `json:"name"`
	Lender bool            `json:"lender"`
	Scopes []partner.Scope `json:"scopes"`
	From   []netip.Prefix  `json:"from"`
}

// clientJSON is a client as commands print it, without its secret.
type clientJSON struct {
	ID string `json:"client_id"`
	systemJSON
	// Partner is null for one of the lender's own systems.
	Partner            *uuid.UUID  `json:"partner_uid"`
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
		systemJSON: newSystemJSON(c.System),
		ID:         c.ID, Partner: orNull(c.PartnerUID), Group: c.Group, Merchants: c.MerchantUIDs,
		RatePerSecond: c.RatePerSecond, Burst: c.Burst,
		PreviousValidUntil: utc(c.PreviousValidUntil), LastUsedAt: utc(c.LastUsedAt),
		RevokedAt: utc(c.RevokedAt), CreatedAt: c.CreatedAt.UTC(),
	}
}

func printClient(w io.Writer, c partner.Client) {
	kind, state, owner := "plain", "active", c.PartnerUID.String()
	switch {
	case c.IsLender():
		kind, owner = "lender", fmt.Sprintf("%s %v", c.Name, c.Scopes)
	case c.Group:
		kind = "group"
	}
	if c.RevokedAt != nil {
		state = "revoked"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%d/s, burst %d\t%s\n",
		c.ID, state, kind, c.RatePerSecond, c.Burst, owner)
}

type clientCreateCmd struct {
	Partner  string   `help:"Partner that gets the credentials." placeholder:"UID"`
	Merchant []string `sep:"none" help:"Merchant, repeatable; default: all." placeholder:"UID"`
	Group    bool     `help:"Act for several merchants; each request names one."`
	Lender   bool     `help:"For one of the lender's own systems instead of a partner."`
	Name     string   `help:"Name of the lender's system in the audit log." placeholder:"NAME"`
	Scope    []string `sep:"none" help:"What the lender's system may do, repeatable: read, applications, documents, tasks, funding." placeholder:"SCOPE"`
	From     []string `sep:"none" help:"Network that the lender's system may call from, repeatable; default: any." placeholder:"CIDR"`
	JSON     bool     `name:"json" help:"Print one JSON document."`
}

// Help describes the two kinds of clients.
func (clientCreateCmd) Help() string {
	return "A partner's client needs --partner; one of the lender's own systems needs --lender, " +
		"--name and at least one --scope, and no partner."
}

// Run issues credentials.
func (cmd clientCreateCmd) Run(env *environment) error {
	ofPartner := cmd.Partner != "" || len(cmd.Merchant) > 0 || cmd.Group
	ofLender := cmd.Name != "" || len(cmd.Scope) > 0 || len(cmd.From) > 0
	switch {
	case cmd.Lender && ofPartner:
		env.refusef("--lender cannot be combined with --partner, --merchant or --group")
	case !cmd.Lender && ofLender:
		env.refusef("--name, --scope and --from need --lender")
	case !cmd.Lender && cmd.Partner == "":
		env.refusef("--partner is required, or --lender for one of the lender's own systems")
	}
	if cmd.Lender {
		return cmd.createLender(env)
	}
	request := partner.NewClient{
		Group: cmd.Group, PartnerUID: env.uid("--partner", cmd.Partner),
		MerchantUIDs: env.uids("--merchant", cmd.Merchant),
	}
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		issued, err := s.Partners.CreateClient(env.ctx, tx, request)
		// The audit log gets no secret.
		return did(entry("client.create", issued.ClientID, "", map[string]any{
			"partner_uid": request.PartnerUID, "group": issued.Group,
			"merchant_uids": issued.MerchantUIDs,
		}), output{
			newIssuedJSON(issued),
			func(w io.Writer) {
				printSecret(w, issued.ClientID, issued.Secret)
				for _, merchant := range issued.MerchantUIDs {
					fmt.Fprintf(w, "  merchant  %s\n", merchant)
				}
			},
		}), byFlags(err)
	})
}

// createLender issues credentials to one of the lender's own systems.
func (cmd clientCreateCmd) createLender(env *environment) error {
	request := partner.NewLenderClient{Name: cmd.Name, Scopes: cmd.Scope, From: cmd.From}
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		issued, err := s.Partners.CreateLenderClient(env.ctx, tx, request)
		return did(entry("client.create", issued.ClientID, "", map[string]any{
			"lender": true, "name": issued.Name, "scopes": issued.Scopes, "from": issued.From,
		}), output{
			newIssuedJSON(issued), func(w io.Writer) {
				printSecret(w, issued.ClientID, issued.Secret)
				fmt.Fprintf(w, "  name      %s\n", issued.Name)
				for _, scope := range issued.Scopes {
					fmt.Fprintf(w, "  scope     %s\n", scope)
				}
				for _, network := range issued.From {
					fmt.Fprintf(w, "  from      %s\n", network)
				}
			},
		}), byFlags(err)
	})
}

func newIssuedJSON(issued partner.Issued) issuedJSON {
	printed := issuedJSON{
		ID: issued.ClientID, Secret: issued.Secret, Group: issued.Group,
		Merchants: issued.MerchantUIDs,
	}
	if issued.IsLender() {
		printed.systemJSON = new(newSystemJSON(issued.System))
	}
	return printed
}

func newSystemJSON(system partner.System) systemJSON {
	return systemJSON{
		Name: orNull(system.Name), Lender: system.IsLender(),
		Scopes: append([]partner.Scope{}, system.Scopes...),
		From:   append([]netip.Prefix{}, system.From...),
	}
}

func printSecret(w io.Writer, id, secret string) {
	fmt.Fprintf(w, "client %s\n  secret    %s   (shown only now; keep it safe)\n", id, secret)
}

type clientListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	Active  bool   `help:"Leave out revoked clients."`
	listFlags
}

// Run lists clients.
func (cmd clientListCmd) Run(env *environment) error {
	filter := partner.ClientFilter{
		WithoutRevoked: cmd.Active, PartnerUID: env.optionalUID("--partner", cmd.Partner),
	}
	return rowsOf("clients", newClientJSON,
		"CLIENT\tSTATE\tKIND\tRATE\tPARTNER", printClient).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]partner.Client, postgres.Cursor, error) {
			return s.Partners.ListClients(env.ctx, filter, page)
		})
}

type clientRotateCmd struct {
	ID      string        `arg:"" name:"client-id" help:"Client."`
	Overlap time.Duration `default:"24h" help:"How long the old secret keeps working; an even older one stops working at once."`
	JSON    bool          `name:"json" help:"Print one JSON document."`
}

// Run rotates a secret.
func (cmd clientRotateCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, unknown := s.Partners.LockClient(env.ctx, tx, cmd.ID)
		rotated, err := s.Partners.RotateClient(env.ctx, tx, cmd.ID, cmd.Overlap)
		until := utc(rotated.PreviousValidUntil) // nil if the old secret does not work any more
		made := did(
			changeEntry("client.rotate", rotated.ClientID, "",
				map[string]any{"previous_valid_until": utc(before.PreviousValidUntil)},
				map[string]any{"previous_valid_until": until}),
			output{map[string]any{
				"client_id": rotated.ClientID, "client_secret": rotated.Secret,
				"previous_valid_until": until,
			}, func(w io.Writer) {
				printSecret(w, rotated.ClientID, rotated.Secret)
				if until != nil {
					fmt.Fprintf(w, "  the old secret works until %s\n", until.Format(time.RFC3339))
				} else {
					fmt.Fprintln(w, "  the old secret stopped working at once")
				}
			}},
		)
		if before.IsRotating(tx.Now) {
			made.notes = []string{overlapEnded(*before.PreviousValidUntil)}
		}
		return made, byFlags(cmp.Or(err, unknown)) // a wrong flag is reported first
	})
}

// overlapEnded says that a rotation ended the overlap of the one before it: callers that still use
// the secret from before that are refused now.
func overlapEnded(planned time.Time) string {
	return "warning: an earlier rotation was under way: the secret before the old one stopped " +
		"working at once; it would have worked until " + planned.UTC().Format(time.RFC3339)
}

type clientRateCmd struct {
	ID    string `arg:"" name:"client-id" help:"Client."`
	Rate  int    `required:"" help:"Sustained requests per second." placeholder:"N"`
	Burst int    `required:"" help:"Requests allowed in a burst." placeholder:"N"`
	JSON  bool   `name:"json" help:"Print one JSON document."`
}

// Run sets a client's limits.
func (cmd clientRateCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, unknown := s.Partners.LockClient(env.ctx, tx, cmd.ID)
		err := s.Partners.SetRate(env.ctx, tx, cmd.ID, cmd.Rate, cmd.Burst)
		return env.doneToClient(s, changeEntry("client.rate", cmd.ID, "",
			map[string]any{"rate_per_second": before.RatePerSecond, "burst": before.Burst},
			map[string]any{"rate_per_second": cmd.Rate, "burst": cmd.Burst},
		)), byFlags(cmp.Or(err, unknown)) // a wrong flag is reported first
	})
}

type clientRevokeCmd struct {
	ID   string `arg:"" name:"client-id" help:"Client."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run revokes a client.
func (cmd clientRevokeCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, err := s.Partners.LockClient(env.ctx, tx, cmd.ID)
		if err != nil {
			return done{}, err
		}
		made := env.doneToClient(s, changeEntry("client.revoke", cmd.ID, "",
			map[string]any{"revoked": false}, map[string]any{"revoked": true}))
		if before.RevokedAt != nil {
			made.entries = nil // it was already revoked
		}
		return made, s.Partners.RevokeClient(env.ctx, tx, cmd.ID)
	})
}

// doneToClient is the result of a change that prints the client afterwards.
func (env *environment) doneToClient(s *app.Services, made operator.Entry) done {
	return done{entries: []operator.Entry{made}, after: func() (output, error) {
		client, err := s.Partners.Client(env.ctx, made.Subject)
		return output{newClientJSON(client), aligned(func(w io.Writer) { printClient(w, client) })}, err
	}}
}
