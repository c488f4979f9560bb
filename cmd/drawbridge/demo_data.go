package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/config"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// demoPassword is the published password of the demo users.
const demoPassword = "drawbridge-demo"

var demoUsers = []operator.NewUser{
	{Email: "operator@drawbridge.example", Name: "Olga Operator", Role: operator.RoleOperator},
	{Email: "support@drawbridge.example", Name: "Sam Support", Role: operator.RoleSupport},
	{Email: "admin@drawbridge.example", Name: "Ada Admin", Role: operator.RoleAdmin},
}

var demoProducts = []catalog.NewProduct{
	{
		Code: "ROOF-3", Name: "Roof in three stages", Term: "120", Rate: "7.99", Fee: "3.75",
		Schedule: "40,40,20", Min: "1000.00", Max: "75000.00",
	},
	{
		Code: "SOLAR-2", Name: "Solar in two halves", Term: "180", Rate: "6.49", Fee: "2.5",
		Schedule: "50,50", Min: "2000.00", Max: "100000.00",
	},
	{
		Code: "WINDOWS-1", Name: "Windows in one draw", Term: "60", Rate: "8.99", Fee: "0",
		Schedule: "100", Min: "500.00", Max: "30000.00",
	},
	{
		Code: "HOME-3", Name: "Renovation in thirds", Term: "240", Rate: "5.99", Fee: "1.25",
		Schedule: "33.33,33.33,33.34", Min: "5000.00", Max: "150000.00",
	},
}

// demoStage is a loan of the demo data and how far it has come.
type demoStage struct {
	stage, description, product string
	// settled draws were paid out, pending ones asks for one more.
	settled int
	pending bool
	// leaves is the status that the application has gone to since.
	leaves lending.ApplicationStatus
}

var demoStages = []demoStage{
	{stage: "first_regular", product: "ROOF-3", description: "40/40/20, nothing drawn yet"},
	{
		stage: "middle", product: "ROOF-3", settled: 1,
		description: "40/40/20, first stage paid; the next draw is regular",
	},
	{
		stage: "final", product: "SOLAR-2", settled: 1,
		description: "50/50, first half paid; the next draw is final and needs a certificate",
	},
	{
		stage: "pending", product: "ROOF-3", pending: true,
		description: "40/40/20, a draw is pending; another one is refused",
	},
	{
		stage: "early_completion", product: "HOME-3", settled: 1,
		description: "thirds, first stage paid; may be completed early",
	},
	{
		stage: "single", product: "WINDOWS-1",
		description: "one disbursement; its first draw is the final one",
	},
	{
		stage: "not_approved", product: "ROOF-3", leaves: lending.StatusPendClearance,
		description: "40/40/20, but the application is not Approved any more",
	},
}

// demo is a load of the data set under way.
type demo struct {
	*services

	ctx      context.Context //nolint:containedctx // one load, made and left in one call
	products map[string]uuid.UUID
}

// loadDemo creates what is missing of the demo data set and returns all of it.
// Everything is found again by its natural key: codes, addresses, credentials
// and external references.
func loadDemo(ctx context.Context, s *services) (demoJSON, error) {
	if s.settings.Env == config.Production {
		return demoJSON{}, errDemoInProduction
	}
	data := demoJSON{
		BaseURL: baseURL(s.settings), ConsoleURL: s.settings.PublicURL + "/console",
	}
	d := &demo{services: s, ctx: ctx}
	for _, load := range []func(*demoJSON) error{
		d.loadUsers, d.loadProducts, d.loadPartners, d.loadLoans, d.loadApplications,
	} {
		if err := load(&data); err != nil {
			return demoJSON{}, fmt.Errorf("loading the demo data: %w", err)
		}
	}
	return data, nil
}

func (d *demo) loadUsers(data *demoJSON) error {
	users, _, err := d.operators.Users(d.ctx, operator.UserFilter{})
	if err != nil {
		return err
	}
	for _, wanted := range demoUsers {
		data.Users = append(data.Users,
			demoUser{Email: wanted.Email, Role: wanted.Role, Password: demoPassword})
		if slices.ContainsFunc(users, func(u operator.User) bool { return u.Email == wanted.Email }) {
			continue
		}
		wanted.Password, wanted.Demo = demoPassword, true
		err := d.db.InTx(d.ctx, func(tx *postgres.Tx) error {
			_, err := d.operators.Create(d.ctx, tx, wanted)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) loadProducts(data *demoJSON) error {
	products, err := d.catalog.List(d.ctx)
	if err != nil {
		return err
	}
	d.products = make(map[string]uuid.UUID)
	for _, wanted := range demoProducts {
		at := slices.IndexFunc(products, func(p catalog.Product) bool { return p.Code == wanted.Code })
		var product catalog.Product
		if at >= 0 {
			product = products[at]
		} else {
			err := d.db.InTx(d.ctx, func(tx *postgres.Tx) (err error) {
				product, err = d.catalog.Create(d.ctx, tx, wanted)
				return err
			})
			if err != nil {
				return err
			}
		}
		uid, err := uuid.Parse(product.UID)
		if err != nil {
			return fmt.Errorf("reading the uid of product %s: %w", product.Code, err)
		}
		d.products[product.Code] = uid
		data.Products = append(data.Products, newProductJSON(product))
	}
	return nil
}

func (d *demo) loadPartners(data *demoJSON) error {
	for _, wanted := range []struct {
		name      string
		client    string
		merchants []string
	}{
		{"Sunrise Roofing", "plain", []string{"Sunrise Roofing"}},
		{"Northwind Group", "group", []string{"Northwind Solar", "Northwind Windows", "Northwind Heat"}},
	} {
		loaded, err := d.loadPartner(wanted.name, wanted.client, wanted.merchants)
		if err != nil {
			return err
		}
		data.Partners = append(data.Partners, loaded)
	}
	return nil
}

func (d *demo) loadPartner(name, client string, merchants []string) (demoPartner, error) {
	credentials := partner.DemoCredentials(client)
	found, err := d.partners.Client(d.ctx, credentials.ClientID)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		err = d.db.InTx(d.ctx, func(tx *postgres.Tx) error {
			return d.createPartner(tx, name, client, merchants)
		})
		if err != nil {
			return demoPartner{}, err
		}
		found, err = d.partners.Client(d.ctx, credentials.ClientID)
	}
	if err != nil {
		return demoPartner{}, err
	}
	return demoPartner{Name: name, UID: found.PartnerUID, Clients: []demoClient{{
		ID: credentials.ClientID, Secret: credentials.Secret, Group: found.Group,
		Merchants: found.MerchantUIDs,
	}}}, nil
}

func (d *demo) createPartner(tx *postgres.Tx, name, client string, merchants []string) error {
	created, err := d.partners.CreatePartner(d.ctx, tx, name)
	if err != nil {
		return err
	}
	for _, merchant := range merchants {
		if _, err := d.partners.CreateMerchant(d.ctx, tx, created.UID, merchant); err != nil {
			return err
		}
	}
	_, err = d.partners.CreateClient(d.ctx, tx, partner.NewClient{
		PartnerUID: created.UID, Group: len(merchants) > 1, Demo: client,
	})
	return err
}

func (d *demo) loadLoans(data *demoJSON) error {
	home := data.Partners[0]
	merchant := home.Clients[0].Merchants[0]
	for _, stage := range demoStages {
		uid, err := d.ensure(home.UID, merchant, "demo-"+stage.stage,
			func(tx *postgres.Tx, uid uuid.UUID) error { return d.advance(tx, uid, stage) })
		if err != nil {
			return fmt.Errorf("making the loan %s: %w", stage.stage, err)
		}
		data.Loans = append(data.Loans, demoLoan{
			UID: uid, MerchantUID: merchant, Stage: stage.stage, Description: stage.description,
		})
	}
	return nil
}

// advance brings a new application to its stage.
func (d *demo) advance(tx *postgres.Tx, uid uuid.UUID, stage demoStage) error {
	if err := d.decide(tx, uid); err != nil {
		return err
	}
	anyone := loan.Caller{Name: "demo"}
	err := d.applications.AcceptOffer(d.ctx, tx, anyone, application.Acceptance{
		ApplicationUID: uid, ProductUID: d.products[stage.product],
	})
	if err != nil {
		return err
	}
	if _, err := d.applications.Move(d.ctx, tx, anyone, uid, lending.StatusApproved); err != nil {
		return err
	}
	for range stage.settled {
		if err := d.drawAndSettle(tx, uid); err != nil {
			return err
		}
	}
	if stage.pending {
		if _, err := d.loans.RequestDraw(d.ctx, tx, anyone, uid, loan.DrawInput{}); err != nil {
			return err
		}
	}
	if stage.leaves == "" {
		return nil
	}
	_, err = d.applications.Move(d.ctx, tx, anyone, uid, stage.leaves)
	return err
}

func (d *demo) decide(tx *postgres.Tx, uid uuid.UUID) error {
	_, err := d.applications.RunDecision(d.ctx, tx, loan.Caller{}, uid)
	return err
}

func (d *demo) drawAndSettle(tx *postgres.Tx, uid uuid.UUID) error {
	anyone := loan.Caller{Name: "demo"}
	made, err := d.loans.RequestDraw(d.ctx, tx, anyone, uid, loan.DrawInput{})
	if err != nil {
		return err
	}
	for _, status := range []lending.FundingStatus{
		lending.FundingProcessing, lending.FundingSettled,
	} {
		if _, err := d.loans.MoveFunding(d.ctx, tx, anyone, made.ID, status); err != nil {
			return err
		}
	}
	return nil
}

// ensure returns the application with the reference, made and prepared in one
// transaction if there is none.
func (d *demo) ensure(
	partnerUID, merchant uuid.UUID, reference string,
	prepare func(tx *postgres.Tx, uid uuid.UUID) error,
) (uuid.UUID, error) {
	uid, found, err := d.applications.FindByReference(d.ctx, merchant, reference)
	if err != nil || found {
		return uid, err
	}
	income := lending.Cents(9_600_000)
	err = d.db.InTx(d.ctx, func(tx *postgres.Tx) error {
		app, err := d.applications.Create(d.ctx, tx, application.NewApplication{
			Source: lending.SourcePartner, PartnerUID: partnerUID, MerchantUID: merchant,
			RequestedAmount: lending.Cents(2_500_000), ExternalReference: &reference,
			Borrower: application.Borrower{
				FirstName: "Bea", LastName: "Borrower", Email: "bea@borrower.example",
				AnnualIncome: &income,
			},
			Project: application.Project{Name: "House on the hill"},
		})
		if err != nil {
			return err
		}
		uid = app.UID
		return prepare(tx, uid)
	})
	return uid, err
}

// loadApplications makes two competing applications that wait for the
// borrower's choice.
func (d *demo) loadApplications(data *demoJSON) error {
	home := data.Partners[0]
	merchant := home.Clients[0].Merchants[0]
	var uids []uuid.UUID
	for _, reference := range []string{"demo-offer-a", "demo-offer-b"} {
		uid, err := d.ensure(home.UID, merchant, reference, d.decide)
		if err != nil {
			return fmt.Errorf("making the application %s: %w", reference, err)
		}
		uids = append(uids, uid)
	}
	for i, uid := range uids {
		app, err := d.applications.Get(d.ctx, loan.Caller{}, uid)
		if err != nil {
			return err
		}
		data.Applications = append(data.Applications, demoApplication{
			UID: uid, MerchantUID: merchant, Status: app.Status, SiblingUID: &uids[1-i],
			Description: "waits for accept-offer, competes with its sibling",
		})
	}
	return nil
}
