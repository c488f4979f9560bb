package catalog_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

func valid() catalog.NewProduct {
	return catalog.NewProduct{
		Code: "SOLAR-120", Name: "Solar 120", Term: "120", Rate: "7.99", Fee: "3.75",
		Schedule: "40,40,20", Min: "1000.00", Max: "100000.00",
	}
}

func create(
	t *testing.T, service *catalog.Service, request catalog.NewProduct,
) (catalog.Product, error) {
	t.Helper()
	var product catalog.Product
	err := service.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		var err error
		product, err = service.Create(t.Context(), tx, request)
		return err
	})
	return product, err
}

func mustCreate(t *testing.T, service *catalog.Service, code string) catalog.Product {
	t.Helper()
	request := valid()
	request.Code = code
	product, err := create(t, service, request)
	if err != nil {
		t.Fatalf("creating product %s: %v", code, err)
	}
	return product
}

func TestCreatedProductReadsBack(t *testing.T) {
	t.Parallel()
	service := &catalog.Service{DB: pgtest.New(t)}
	request := valid()
	request.Schedule, request.Fee, request.Rate = "33.33, 33.33, 33.34", "0", "12.5000"
	created, err := create(t, service, request)
	if err != nil {
		t.Fatal(err)
	}
	uid := uuid.MustParse(created.UID)
	got, err := service.Product(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		got.UID, got.Code, got.Name, got.Term, got.InterestRate.String(),
		got.MerchantFeePercentage.String(), got.Schedule.String(), got.Min.String(),
		got.Max.String(),
	}
	want := []string{
		created.UID, "SOLAR-120", "Solar 120", "120", "12.5", "0", "33.33,33.33,33.34",
		"1000.00", "100000.00",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("the product changed on its way through the database:\n%s", diff)
	}
	if !got.Active || !got.CreatedAt.Equal(created.CreatedAt) {
		t.Errorf("active %v since %v, want true since %v",
			got.Active, got.CreatedAt, created.CreatedAt)
	}
}

func TestCreateNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*catalog.NewProduct)
		fields []string
		says   string
	}{
		{
			"all empty", func(p *catalog.NewProduct) { *p = catalog.NewProduct{} },
			[]string{"code", "name", "term", "rate", "fee", "schedule", "min", "max"},
			"code",
		},
		{
			"not 100", func(p *catalog.NewProduct) { p.Schedule = "40,40,10" },
			[]string{"schedule"},
			"must add up to exactly 100",
		},
		{
			"negative stage", func(p *catalog.NewProduct) { p.Schedule = "120,-20" },
			[]string{"schedule"},
			"such as 40,40,20",
		},
		{
			"negative fee", func(p *catalog.NewProduct) { p.Fee = "-1" },
			[]string{"fee"},
			"such as 3.75",
		},
		{
			"fee above 100", func(p *catalog.NewProduct) { p.Fee = "100.01" },
			[]string{"fee"},
			"at most 100",
		},
		{
			"rate in words", func(p *catalog.NewProduct) { p.Rate = "seven" },
			[]string{"rate"},
			"percentage",
		},
		{
			"term of nothing", func(p *catalog.NewProduct) { p.Term = "0" },
			[]string{"term"},
			"from 1 to 600",
		},
		{
			"minimum of zero", func(p *catalog.NewProduct) { p.Min = "0" },
			[]string{"min"},
			"above 0.00",
		},
		{
			"minimum above maximum", func(p *catalog.NewProduct) { p.Min = "100000.01" },
			[]string{"max"},
			`at least "min" 100000.01`,
		},
		{
			"three decimals", func(p *catalog.NewProduct) { p.Max = "1.005" },
			[]string{"max"},
			"2 decimal places",
		},
		{
			"space in the code", func(p *catalog.NewProduct) { p.Code = "A B" },
			[]string{"code"},
			"letters, digits",
		},
		{
			"long code", func(p *catalog.NewProduct) { p.Code = strings.Repeat("A", 61) },
			[]string{"code"},
			"1 to 60",
		},
		{
			"two-line name", func(p *catalog.NewProduct) { p.Name = "a\nb" },
			[]string{"name"},
			"one line",
		},
	}
	service := &catalog.Service{DB: pgtest.New(t)}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := valid()
			test.change(&request)
			_, err := create(t, service, request)
			refusal, ok := errors.AsType[*lending.Error](err)
			if !ok || refusal.Code != lending.CodeValidation {
				t.Fatalf("got %v, want a validation error", err)
			}
			var fields []string
			for _, problem := range refusal.Details {
				fields = append(fields, problem.Field)
			}
			if diff := cmp.Diff(test.fields, fields); diff != "" {
				t.Errorf("wrong fields:\n%s", diff)
			}
			if !strings.Contains(refusal.Message, test.says) {
				t.Errorf("%q does not say %q", refusal.Message, test.says)
			}
		})
	}
	products, err := service.List(t.Context())
	if err != nil || len(products) != 0 {
		t.Errorf("a refused product was stored: %v, %v", products, err)
	}
}

func TestOneProductPerCode(t *testing.T) {
	t.Parallel()
	service := &catalog.Service{DB: pgtest.New(t)}
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { _, errs[i] = create(t, service, valid()) })
	}
	group.Wait()
	created := 0
	for _, err := range errs {
		switch {
		case err == nil:
			created++
		case lending.ErrorCode(err) != lending.CodeValidation,
			!strings.Contains(err.Error(), `"code" SOLAR-120 is taken`):
			t.Errorf("unexpected error: %v", err)
		}
	}
	if created != 1 {
		t.Errorf("%d products were created, want 1", created)
	}
}

func TestListsByCode(t *testing.T) {
	t.Parallel()
	service := &catalog.Service{DB: pgtest.New(t)}
	for _, code := range []string{"b", "a-2", "B", "a-1"} {
		mustCreate(t, service, code)
	}
	off := mustCreate(t, service, "a-0")
	setActive(t, service, uuid.MustParse(off.UID), false)

	all, err := service.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, product := range all {
		codes = append(codes, product.Code)
	}
	if diff := cmp.Diff([]string{"B", "a-0", "a-1", "a-2", "b"}, codes); diff != "" {
		t.Errorf("list:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"B", "a-1", "a-2", "b"}, activeCodes(t, service)); diff != "" {
		t.Errorf("active list:\n%s", diff)
	}
	setActive(t, service, uuid.MustParse(off.UID), true)
	if codes := activeCodes(t, service); len(codes) != 5 {
		t.Errorf("active again: %v, want all five", codes)
	}
}

func TestUnknownProduct(t *testing.T) {
	t.Parallel()
	service := &catalog.Service{DB: pgtest.New(t)}
	calls := map[string]func(ctx context.Context, uid uuid.UUID) error{
		"Product": func(ctx context.Context, uid uuid.UUID) error {
			_, err := service.Product(ctx, uid)
			return err
		},
		"SetActive": func(ctx context.Context, uid uuid.UUID) error {
			return service.DB.InTx(ctx, func(tx *postgres.Tx) error {
				return service.SetActive(ctx, tx, uid, false)
			})
		},
	}
	for name, call := range calls {
		if err := call(t.Context(), uuid.New()); lending.ErrorCode(err) != lending.CodeNotFound {
			t.Errorf("%s of an unknown product: %v, want NOT_FOUND", name, err)
		}
	}
}

func setActive(t *testing.T, service *catalog.Service, uid uuid.UUID, active bool) {
	t.Helper()
	err := service.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		return service.SetActive(t.Context(), tx, uid, active)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func activeCodes(t *testing.T, service *catalog.Service) []string {
	t.Helper()
	var codes []string
	err := service.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
		products, err := service.ListActive(t.Context(), tx)
		codes = nil
		for _, product := range products {
			codes = append(codes, product.Code)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}
