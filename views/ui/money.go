package ui

import (
	"context"
	"strings"

	"drawbridge/internal/lending"
)

// currencyKey is the context key of the currency.
type currencyKey struct{}

// WithCurrency sets the currency of all amounts that are rendered with the context, as an
// ISO 4217 code. Without it amounts are bare figures.
func WithCurrency(ctx context.Context, code string) context.Context {
	return context.WithValue(ctx, currencyKey{}, code)
}

// currencyOf returns the currency that WithCurrency set, empty if none.
func currencyOf(ctx context.Context) string {
	code, _ := ctx.Value(currencyKey{}).(string)
	return code
}

// Amount formats money with its currency and grouped thousands: USD 12,345.00.
func Amount(ctx context.Context, money lending.Money) string {
	return InCurrency(currencyOf(ctx), money)
}

// InCurrency is Amount without a context.
func InCurrency(code string, money lending.Money) string {
	return If(code == "", Figure(money), code+"\u00a0"+Figure(money))
}

// AmountHint says below a field how to type an amount, and in which currency.
func AmountHint(code string) string {
	return If(code == "", "For example 12500.00.", "In "+code+", for example 12500.00.")
}

// Figure formats money with grouped thousands: 12,345.00.
func Figure(money lending.Money) string {
	whole, cents, _ := strings.Cut(money.String(), ".")
	sign := ""
	if digits, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", digits
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return sign + whole + "." + cents
}
