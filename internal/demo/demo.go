// Package demo loads the published data set that a development server shows.
package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/config"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
)

// Data is the demo data set as it is printed.
type Data struct {
	BaseURL      string            `json:"base_url"`
	ConsoleURL   string            `json:"console_url"`
	Users        []User            `json:"users"`
	Partners     []Partner         `json:"partners"`
	Products     []catalog.Product `json:"products"`
	Loans        []Loan            `json:"loans"`
	Applications []Application     `json:"applications"`
	// Lapsed lists the published credentials that no longer work, a line of text each.
	Lapsed []string `json:"-"`
}

// User is a user of the console, with the password.
type User struct {
	Email    string        `json:"email"`
	Role     operator.Role `json:"role"`
	Password string        `json:"password"`
}

// Partner is a partner with its API clients.
type Partner struct {
	Name    string    `json:"name"`
	UID     uuid.UUID `json:"partner_uid"`
	Clients []Client  `json:"clients"`
}

// Client is an API client with its published secret.
type Client struct {
	ID        string      `json:"client_id"`
	Secret    string      `json:"client_secret"`
	Group     bool        `json:"group"`
	Merchants []uuid.UUID `json:"merchant_uids"`
}

// Loan is a loan at one stage of its draws.
type Loan struct {
	UID         uuid.UUID `json:"loan_application_uid"`
	MerchantUID uuid.UUID `json:"merchant_uid"`
	Stage       string    `json:"stage"`
	Description string    `json:"description"`
}

// Application is an application that is waiting for the borrower.
type Application struct {
	UID         uuid.UUID                 `json:"thrive_application_uid"`
	MerchantUID uuid.UUID                 `json:"merchant_uid"`
	Status      lending.ApplicationStatus `json:"status"`
	Description string                    `json:"description"`
	SiblingUID  *uuid.UUID                `json:"sibling_uid"`
}

// ErrProduction keeps published credentials out of sandbox and production.
var ErrProduction = errors.New(
	"the demo data has published passwords; it is allowed only with DRAWBRIDGE_ENV=development")

// Password is the published password of the demo users.
const Password = "drawbridge-demo"

// Users are the console users of the data set.
var Users = []operator.NewUser{
	{Email: "operator@drawbridge.example", Name: "Olga Operator", Role: operator.RoleOperator},
	{Email: "support@drawbridge.example", Name: "Sam Support", Role: operator.RoleSupport},
	{Email: "admin@drawbridge.example", Name: "Ada Admin", Role: operator.RoleAdmin},
}

var newProducts = []catalog.NewProduct{
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

// loanStage is a loan of the demo data and its progress.
type loanStage struct {
	stage, description, product string
	// settled is the number of draws paid out; pending requests one more.
	settled int
	pending bool
	// leaves is the status to which the application has moved since.
	leaves lending.ApplicationStatus
}

var loanStages = []loanStage{
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

// Check reports in advance whether Load would refuse the environment.
func Check(env config.Env) error {
	if env.Hosted() {
		return ErrProduction
	}
	return nil
}

// demo is one load of the data set.
type demo struct {
	*app.Services

	ctx      context.Context //nolint:containedctx // one load, made and left in one call
	products map[string]uuid.UUID
}

// loadLock is the advisory lock for loading. Its value has no meaning.
const loadLock = 7_206_114_938_551_204_173

// withLoadLock runs load while no other process loads: missing data is looked for first and then
// made in its own transaction.
func withLoadLock(ctx context.Context, db *postgres.DB, load func() error) error {
	lock, err := db.AwaitLock(ctx, loadLock)
	if err != nil {
		return fmt.Errorf("waiting for other loads of demo data: %w", err)
	}
	return errors.Join(load(), lock.Free())
}

// Load creates what is missing of the demo data set and returns all of it. Everything is
// identified by its natural key: codes, addresses, credentials and external references.
func Load(ctx context.Context, s *app.Services) (Data, error) {
	if err := Check(s.Settings.Env); err != nil {
		return Data{}, err
	}
	data := Data{BaseURL: s.BaseURL(), ConsoleURL: s.Settings.PublicURL + "/console"}
	d := &demo{Services: s, ctx: ctx}
	err := withLoadLock(ctx, s.DB, func() error {
		for _, load := range []func(*Data) error{
			d.loadUsers, d.loadProducts, d.loadPartners, d.loadLoans, d.loadApplications,
		} {
			if err := load(&data); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Data{}, fmt.Errorf("loading the demo data: %w", err)
	}
	return data, nil
}

func (d *demo) loadUsers(data *Data) error {
	users, _, err := d.Operators.Users(d.ctx, operator.UserFilter{})
	if err != nil {
		return err
	}
	for _, wanted := range Users {
		data.Users = append(data.Users, User{Email: wanted.Email, Role: wanted.Role, Password: Password})
		if slices.ContainsFunc(users, func(u operator.User) bool { return u.Email == wanted.Email }) {
			works, err := d.Operators.Accepts(d.ctx, wanted.Email, Password)
			if err != nil {
				return err
			}
			if !works {
				data.Lapsed = append(data.Lapsed, "user "+wanted.Email+": the published password does "+
					"not work any more; it was replaced, or the user disabled")
			}
			continue
		}
		wanted.Password, wanted.Demo = Password, true
		err := d.DB.InTx(d.ctx, func(tx *postgres.Tx) error {
			_, err := d.Operators.Create(d.ctx, tx, wanted)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) loadProducts(data *Data) error {
	products, err := d.Catalog.List(d.ctx)
	if err != nil {
		return err
	}
	d.products = make(map[string]uuid.UUID)
	for _, wanted := range newProducts {
		at := slices.IndexFunc(products, func(p catalog.Product) bool { return p.Code == wanted.Code })
		var product catalog.Product
		if at >= 0 {
			product = products[at]
		} else {
			err := d.DB.InTx(d.ctx, func(tx *postgres.Tx) (err error) {
				product, err = d.Catalog.Create(d.ctx, tx, wanted)
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
		data.Products = append(data.Products, product)
	}
	return nil
}

func (d *demo) loadPartners(data *Data) error {
	for _, wanted := range []struct {
		name      string
		client    string
		merchants []string
	}{
		{"Sunrise Roofing", partner.DemoPlain, []string{"Sunrise Roofing"}},
		{"Northwind Group", partner.DemoGroup, []string{
			"Northwind Solar", "Northwind Windows", "Northwind Heat",
		}},
	} {
		credentials := partner.DemoCredentials(wanted.client)
		found, err := d.Partners.Client(d.ctx, credentials.ClientID)
		if lending.ErrorCode(err) == lending.CodeNotFound {
			err = d.DB.InTx(d.ctx, func(tx *postgres.Tx) error {
				return d.createPartner(tx, wanted.name, wanted.client, wanted.merchants)
			})
			if err != nil {
				return err
			}
			found, err = d.Partners.Client(d.ctx, credentials.ClientID)
		}
		if err != nil {
			return err
		}
		works, err := d.Partners.Accepts(d.ctx, credentials)
		if err != nil {
			return err
		}
		if !works {
			data.Lapsed = append(data.Lapsed, "client "+credentials.ClientID+": the published secret "+
				"does not work any more; it was replaced, or the client revoked")
		}
		loaded := Partner{Name: wanted.name, UID: found.PartnerUID, Clients: []Client{{
			ID: credentials.ClientID, Secret: credentials.Secret, Group: found.Group,
			Merchants: found.MerchantUIDs,
		}}}
		data.Partners = append(data.Partners, loaded)
	}
	return nil
}

func (d *demo) createPartner(tx *postgres.Tx, name, client string, merchants []string) error {
	created, err := d.Partners.CreatePartner(d.ctx, tx, name, "")
	if err != nil {
		return err
	}
	for _, merchant := range merchants {
		if _, err := d.Partners.CreateMerchant(d.ctx, tx, created.UID, merchant); err != nil {
			return err
		}
	}
	_, err = d.Partners.CreateClient(d.ctx, tx, partner.NewClient{
		PartnerUID: created.UID, Group: len(merchants) > 1, Demo: client,
	})
	return err
}

func (d *demo) loadLoans(data *Data) error {
	home := data.Partners[0]
	merchant := home.Clients[0].Merchants[0]
	for _, stage := range loanStages {
		uid, err := d.ensure(home.UID, merchant, "demo-"+stage.stage,
			func(tx *postgres.Tx, uid uuid.UUID) error { return d.advance(tx, uid, stage) })
		if err != nil {
			return fmt.Errorf("making the loan %s: %w", stage.stage, err)
		}
		data.Loans = append(data.Loans, Loan{
			UID: uid, MerchantUID: merchant, Stage: stage.stage, Description: stage.description,
		})
	}
	return nil
}

// advance takes a new application to its stage.
func (d *demo) advance(tx *postgres.Tx, uid uuid.UUID, stage loanStage) error {
	if err := d.decide(tx, uid); err != nil {
		return err
	}
	anyone := loan.Caller{Name: "demo"}
	_, err := d.Applications.AcceptOffer(d.ctx, tx, anyone, application.Acceptance{
		ApplicationUID: uid, ProductUID: d.products[stage.product],
	})
	if err != nil {
		return err
	}
	if _, err := d.Applications.Move(d.ctx, tx, anyone, uid, lending.StatusApproved); err != nil {
		return err
	}
	for range stage.settled {
		made, err := d.Loans.RequestDraw(d.ctx, tx, anyone, uid, loan.DrawInput{})
		if err != nil {
			return err
		}
		for _, to := range []lending.FundingStatus{lending.FundingProcessing, lending.FundingSettled} {
			change := lending.FundingChange{Status: to}
			if _, _, err := d.Loans.MoveFunding(d.ctx, tx, anyone, made.ID, change); err != nil {
				return err
			}
		}
	}
	if stage.pending {
		if _, err := d.Loans.RequestDraw(d.ctx, tx, anyone, uid, loan.DrawInput{}); err != nil {
			return err
		}
	}
	if stage.leaves == "" {
		return nil
	}
	_, err = d.Applications.Move(d.ctx, tx, anyone, uid, stage.leaves)
	return err
}

func (d *demo) decide(tx *postgres.Tx, uid uuid.UUID) error {
	_, err := d.Applications.RunDecision(d.ctx, tx, loan.Caller{}, uid)
	return err
}

// ensure returns the application with the reference; if there is none, it makes and prepares one
// in one transaction.
func (d *demo) ensure(
	partnerUID, merchant uuid.UUID, reference string,
	prepare func(tx *postgres.Tx, uid uuid.UUID) error,
) (uuid.UUID, error) {
	uid, found, err := d.Applications.FindByReference(d.ctx, merchant, reference)
	if err != nil || found {
		return uid, err
	}
	err = d.DB.InTx(d.ctx, func(tx *postgres.Tx) error {
		made, err := d.Applications.Create(d.ctx, tx, application.NewApplication{
			Source: lending.SourcePartner, PartnerUID: partnerUID, MerchantUID: merchant,
			RequestedAmount: lending.Cents(2_500_000), ExternalReference: &reference,
			Borrower: application.Borrower{
				FirstName: "Bea", LastName: "Borrower", Email: "bea@borrower.example",
				AnnualIncome: new(lending.Cents(9_600_000)),
			},
			Project: application.Project{Name: "House on the hill"},
		})
		if err != nil {
			return err
		}
		uid = made.UID
		return prepare(tx, uid)
	})
	return uid, err
}

// loadApplications makes two competing applications that wait for the
// borrower's choice.
func (d *demo) loadApplications(data *Data) error {
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
		made, err := d.Applications.Get(d.ctx, loan.Caller{}, uid)
		if err != nil {
			return err
		}
		data.Applications = append(data.Applications, Application{
			UID: uid, MerchantUID: merchant, Status: made.Status, SiblingUID: &uids[1-i],
			Description: "waits for accept-offer, competes with its sibling",
		})
	}
	return nil
}
