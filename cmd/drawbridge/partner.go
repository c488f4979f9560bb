package main

import (
	"fmt"
	"io"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

type partnerCmd struct {
	Create partnerCreateCmd `cmd:"" help:"Create a partner."`
	Update partnerUpdateCmd `cmd:"" help:"Change a partner's name or contact."`
	List   partnerListCmd   `cmd:"" help:"List partners, newest first."`
}

// partnerJSON is a partner as commands print it.
type partnerJSON struct {
	UID  uuid.UUID `json:"partner_uid"`
	Name string    `json:"name"`
	// Contact is null for nobody.
	Contact *string `json:"contact"`
}

func newPartnerJSON(p partner.Partner) partnerJSON {
	return partnerJSON{UID: p.UID, Name: p.Name, Contact: p.Contact}
}

func (p partnerJSON) print(w io.Writer) {
	contact := "no contact"
	if p.Contact != nil {
		contact = *p.Contact
	}
	fmt.Fprintf(w, "partner %s  %s  %s\n", p.UID, p.Name, contact)
}

type partnerCreateCmd struct {
	Name    string `required:"" help:"Name of the organisation." placeholder:"TEXT"`
	Contact string `empty:"" help:"E-mail address to notify of deliveries that used up their attempts." placeholder:"ADDRESS"`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// Run creates a partner.
func (cmd partnerCreateCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		created, err := s.Partners.CreatePartner(env.ctx, tx, cmd.Name, cmd.Contact)
		printed := newPartnerJSON(created)
		return did(
			entry("partner.create", created.UID.String(), "", printed),
			output{printed, printed.print},
		), byFlags(err)
	})
}

type partnerUpdateCmd struct {
	UID     string  `arg:"" name:"partner-uid" help:"Partner."`
	Name    *string `help:"Name of the organisation." placeholder:"TEXT"`
	Contact *string `empty:"" help:"E-mail address to notify of deliveries that used up their attempts; \"\" for none." placeholder:"ADDRESS"`
	JSON    bool    `name:"json" help:"Print one JSON document."`
}

// Run changes a partner.
func (cmd partnerUpdateCmd) Run(env *environment) error {
	if cmd.Name == nil && cmd.Contact == nil {
		env.refusef("--name or --contact is required")
	}
	uid := env.uid("the partner", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, after, err := s.Partners.UpdatePartner(env.ctx, tx, uid,
			partner.Change{Name: cmd.Name, Contact: cmd.Contact})
		printed := newPartnerJSON(after)
		return did(changeEntry("partner.update", uid.String(), "", newPartnerJSON(before), printed),
			output{printed, printed.print}), byFlags(err)
	})
}

type partnerListCmd struct {
	Name string `help:"Only names that begin with this." placeholder:"TEXT"`
	listFlags
}

// Run lists partners.
func (cmd partnerListCmd) Run(env *environment) error {
	filter := partner.Filter{Name: cmd.Name}
	const head = "PARTNER\tNAME\tCONTACT"
	return rowsOf("partners", newPartnerJSON, head, func(w io.Writer, p partner.Partner) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.UID, p.Name, postgres.OrZero(p.Contact))
	}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]partner.Partner, postgres.Cursor, error) {
			return s.Partners.ListPartners(env.ctx, filter, page)
		})
}

type merchantCmd struct {
	Create merchantCreateCmd `cmd:"" help:"Create a merchant of a partner."`
	List   merchantListCmd   `cmd:"" help:"List merchants, newest first."`
}

// merchantJSON is a merchant as commands print it.
type merchantJSON struct {
	UID     uuid.UUID `json:"merchant_uid"`
	Partner uuid.UUID `json:"partner_uid"`
	Name    string    `json:"name"`
}

func newMerchantJSON(m partner.Merchant) merchantJSON {
	return merchantJSON{UID: m.UID, Partner: m.PartnerUID, Name: m.Name}
}

type merchantCreateCmd struct {
	Partner string `required:"" help:"Partner that the merchant belongs to." placeholder:"UID"`
	Name    string `required:"" help:"Name of the business." placeholder:"TEXT"`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// Run creates a merchant.
func (cmd merchantCreateCmd) Run(env *environment) error {
	owner := env.uid("--partner", cmd.Partner)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		created, err := s.Partners.CreateMerchant(env.ctx, tx, owner, cmd.Name)
		printed := newMerchantJSON(created)
		return did(
			entry("merchant.create", created.UID.String(), "", printed),
			output{printed, func(w io.Writer) {
				fmt.Fprintf(w, "merchant %s  %s\n", created.UID, created.Name)
			}},
		), byFlags(err)
	})
}

type merchantListCmd struct {
	Partner string `help:"Only this partner's." placeholder:"UID"`
	listFlags
}

// Run lists merchants.
func (cmd merchantListCmd) Run(env *environment) error {
	filter := partner.MerchantFilter{PartnerUID: env.optionalUID("--partner", cmd.Partner)}
	return rowsOf("merchants", newMerchantJSON, "MERCHANT\tPARTNER\tNAME",
		func(w io.Writer, m partner.Merchant) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", m.UID, m.PartnerUID, m.Name)
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]partner.Merchant, postgres.Cursor, error) {
			return s.Partners.ListMerchants(env.ctx, filter, page)
		})
}
