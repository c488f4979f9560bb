package lending_test

import (
	"errors"
	"testing"

	"drawbridge/internal/lending"
)

// money parses an amount that the test itself wrote.
func money(t testing.TB, text string) lending.Money {
	t.Helper()
	amount, err := lending.ParseMoney(text)
	if err != nil {
		t.Fatalf("amount %q: %v", text, err)
	}
	return amount
}

// sum adds amounts, 0.00 for none.
func sum(amounts ...lending.Money) lending.Money {
	var total lending.Money
	for _, amount := range amounts {
		total = total.Add(amount)
	}
	return total
}

// moneyOrNil is money, and nil for the empty text.
func moneyOrNil(t testing.TB, text string) *lending.Money {
	t.Helper()
	if text == "" {
		return nil
	}
	amount := money(t, text)
	return &amount
}

func percent(t testing.TB, text string) lending.Percent {
	t.Helper()
	parsed, err := lending.ParsePercent(text)
	if err != nil {
		t.Fatalf("percentage %q: %v", text, err)
	}
	return parsed
}

func schedule(t testing.TB, text string) lending.Schedule {
	t.Helper()
	parsed, err := lending.ParseSchedule(text)
	if err != nil {
		t.Fatalf("schedule %q: %v", text, err)
	}
	return parsed
}

// wantCode fails unless the error has the code; the empty code means no error.
func wantCode(t testing.TB, err error, want lending.Code) {
	t.Helper()
	if got := lending.ErrorCode(err); got != want {
		t.Fatalf("error is %q (%v), want %q", got, err, want)
	}
}

// wrongFields returns the fields that a refusal names, in order.
func wrongFields(err error) []string {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok {
		return nil
	}
	var fields []string
	for _, problem := range refusal.Details {
		fields = append(fields, problem.Field)
	}
	return fields
}

// texts formats amounts or percentages for comparison.
func texts[T interface{ String() string }](values []T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = value.String()
	}
	return all
}
