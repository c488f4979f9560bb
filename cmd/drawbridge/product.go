package main

import (
	"fmt"
	"io"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type productCmd struct {
	Create productCreateCmd `cmd:"" help:"Create a product."`
	List   productListCmd   `cmd:"" help:"List products by code."`
}

// productJSON is a product as commands print it.
type productJSON struct {
	UID          string          `json:"product_uid"`
	Code         string          `json:"code"`
	Name         string          `json:"name"`
	Term         string          `json:"term"`
	InterestRate lending.Percent `json:"interest_rate"`
	Fee          lending.Percent `json:"merchant_fee_percentage"`
	// Schedule is a list of percentages.
	Schedule lending.Schedule `json:"schedule"`
	Min      lending.Money    `json:"min_amount"`
	Max      lending.Money    `json:"max_amount"`
	Active   bool             `json:"active"`
}

func newProductJSON(p catalog.Product) productJSON {
	return productJSON{
		UID: p.UID, Code: p.Code, Name: p.Name, Term: p.Term, InterestRate: p.InterestRate,
		Fee: p.MerchantFeePercentage, Schedule: p.Schedule, Min: p.Min, Max: p.Max,
		Active: p.Active,
	}
}

func printProduct(w io.Writer, p catalog.Product) {
	note := ""
	if !p.Active {
		note = "  (not on offer)"
	}
	fmt.Fprintf(w, "%s  %-16s %s months, rate %s %%, fee %s %%, draws %s, %s to %s  %s%s\n",
		p.UID, p.Code, p.Term, p.InterestRate, p.MerchantFeePercentage, p.Schedule, p.Min, p.Max,
		p.Name, note)
}

// productCreateCmd takes numbers as text, so that the domain reads them.
type productCreateCmd struct {
	Code     string `required:"" help:"Unique short name." placeholder:"TEXT"`
	Name     string `required:"" help:"Name that borrowers see." placeholder:"TEXT"`
	Term     string `required:"" help:"Months, such as 120." placeholder:"N"`
	Rate     string `required:"" help:"Interest for a year, such as 7.99." placeholder:"PERCENT"`
	Fee      string `required:"" help:"Merchant fee, such as 3.75." placeholder:"PERCENT"`
	Schedule string `required:"" help:"Draw shares, such as 40,40,20." placeholder:"LIST"`
	Min      string `required:"" help:"Least amount, such as 1000.00." placeholder:"AMOUNT"`
	Max      string `required:"" help:"Greatest amount, such as 100000.00." placeholder:"AMOUNT"`
	JSON     bool   `name:"json" help:"Print one JSON document."`
}

// Run creates a product.
func (cmd productCreateCmd) Run(env *environment) error {
	request := catalog.NewProduct{
		Code: cmd.Code, Name: cmd.Name, Term: cmd.Term, Rate: cmd.Rate, Fee: cmd.Fee,
		Schedule: cmd.Schedule, Min: cmd.Min, Max: cmd.Max,
	}
	return env.change(func(s *services, tx *postgres.Tx) (func() error, error) {
		created, err := s.catalog.Create(env.ctx, tx, request)
		if err != nil {
			return nil, byFlags(err)
		}
		printed := newProductJSON(created)
		err = s.operators.Audit(env.ctx, tx, operator.Entry{
			Actor: cliActor, Action: "product.create", SubjectKind: "product",
			Subject: created.UID, After: printed,
		})
		return func() error {
			return env.print(cmd.JSON, printed, func(w io.Writer) { printProduct(w, created) })
		}, err
	})
}

type productListCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run lists products.
func (cmd productListCmd) Run(env *environment) error {
	return env.withServices(func(s *services) error {
		products, err := s.catalog.List(env.ctx)
		if err != nil {
			return err
		}
		return listing[catalog.Product, productJSON]{
			"products", products, newProductJSON, printProduct,
		}.print(env, cmd.JSON)
	})
}
