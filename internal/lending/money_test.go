package lending_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func TestParseMoney(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, want string
		err        error
	}{
		{text: "0", want: "0.00"},
		{text: "1234.5", want: "1234.50"},
		{text: "1234.50", want: "1234.50"},
		{text: "0.01", want: "0.01"},
		{text: "007", want: "7.00"},
		{text: strings.Repeat("0", 1<<16) + "7", want: "7.00"},
		{text: "999999999999.99", want: "999999999999.99"},
		{text: "1000000000000", err: lending.ErrMoneyRange},
		{text: strings.Repeat("9", 1<<16), err: lending.ErrMoneyRange},
		{text: "", err: lending.ErrMoneySyntax},
		{text: ".", err: lending.ErrMoneySyntax},
		{text: ".5", err: lending.ErrMoneySyntax},
		{text: "5.", err: lending.ErrMoneySyntax},
		{text: "1.234", err: lending.ErrMoneySyntax},
		{text: "1.2.3", err: lending.ErrMoneySyntax},
		{text: "1,000.00", err: lending.ErrMoneySyntax},
		{text: "-1", err: lending.ErrMoneySyntax},
		{text: "+1", err: lending.ErrMoneySyntax},
		{text: "1e3", err: lending.ErrMoneySyntax},
		{text: "1e999999999", err: lending.ErrMoneySyntax},
		{text: "0x10", err: lending.ErrMoneySyntax},
		{text: "1_000", err: lending.ErrMoneySyntax},
		{text: " 1", err: lending.ErrMoneySyntax},
		{text: "1\n", err: lending.ErrMoneySyntax},
		{text: "1\x00", err: lending.ErrMoneySyntax},
		{text: "١٢", err: lending.ErrMoneySyntax},
		{text: "１", err: lending.ErrMoneySyntax},
		{text: "$5", err: lending.ErrMoneySyntax},
		{text: "NaN", err: lending.ErrMoneySyntax},
		{text: "Infinity", err: lending.ErrMoneySyntax},
		{text: "\xff", err: lending.ErrMoneySyntax},
	} {
		got, err := lending.ParseMoney(tc.text)
		if !errors.Is(err, tc.err) {
			t.Errorf("ParseMoney(%.20q) error = %v, want %v", tc.text, err, tc.err)
		}
		if err == nil && got.String() != tc.want {
			t.Errorf("ParseMoney(%q) = %s, want %s", tc.text, got, tc.want)
		}
	}
}

func TestMoneyArithmetic(t *testing.T) {
	t.Parallel()
	ten, three := money(t, "10"), money(t, "3.33")
	for name, tc := range map[string]struct {
		got  lending.Money
		want string
	}{
		"zero value":    {lending.Money{}, "0.00"},
		"cents":         {lending.Cents(123450), "1234.50"},
		"sum":           {ten.Add(three), "13.33"},
		"difference":    {ten.Sub(three), "6.67"},
		"below zero":    {three.Sub(ten), "-6.67"},
		"lesser":        {lending.MinMoney(ten, three), "3.33"},
		"greater":       {lending.MaxMoney(three, ten), "10.00"},
		"sum of none":   {sum(), "0.00"},
		"sum of many":   {sum(ten, three, three), "16.66"},
		"no float loss": {money(t, "0.1").Add(money(t, "0.2")), "0.30"},
	} {
		if tc.got.String() != tc.want {
			t.Errorf("%s = %s, want %s", name, tc.got, tc.want)
		}
	}
	if !ten.Equal(money(t, "10.00")) || ten.Equal(three) || !three.Less(ten) || ten.Less(ten) {
		t.Error("amounts do not compare by value")
	}
	if !(lending.Money{}).IsZero() || !ten.IsPositive() || !three.Sub(ten).IsNegative() {
		t.Error("amounts do not know their sign")
	}
}

func TestPortionRoundsHalfUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ amount, percent, want string }{
		{"4000", "3.75", "150.00"},
		{"0.10", "5", "0.01"},      // 0.005 goes up
		{"0.30", "5", "0.02"},      // 0.015, which a float has as 0.01499…
		{"1.01", "50", "0.51"},     // 0.505
		{"0.09", "5", "0.00"},      // 0.0045 goes down
		{"2.50", "1", "0.03"},      // 0.025: up, where rounding to even would give 0.02
		{"100", "33.33", "33.33"},  //
		{"0.01", "0.0001", "0.00"}, //
		{"999999999999.99", "100", "999999999999.99"},
		{"1234.56", "0", "0.00"},
	} {
		if got := money(t, tc.amount).Portion(percent(t, tc.percent)).String(); got != tc.want {
			t.Errorf("%s %% of %s = %s, want %s", tc.percent, tc.amount, got, tc.want)
		}
	}
}

func TestMoneyInJSON(t *testing.T) {
	t.Parallel()
	type body struct {
		Amount lending.Money `json:"amount"`
	}
	out, err := json.Marshal(body{money(t, "1234.5")})
	if err != nil || string(out) != `{"amount":"1234.50"}` {
		t.Errorf("marshalled %s, %v", out, err)
	}
	var in body
	err = json.Unmarshal([]byte(`{"amount":"0.1"}`), &in)
	if err != nil || in.Amount.String() != "0.10" {
		t.Errorf("unmarshalled %s, %v", in.Amount, err)
	}
	err = json.Unmarshal([]byte(`{"amount":"1e3"}`), &in)
	if !errors.Is(err, lending.ErrMoneySyntax) {
		t.Errorf("an exponent is %v, want %v", err, lending.ErrMoneySyntax)
	}
	var wrongType *json.UnmarshalTypeError
	err = json.Unmarshal([]byte(`{"amount":12.5}`), &in)
	if !errors.As(err, &wrongType) || wrongType.Field != "amount" {
		t.Errorf("a number is %v, want a type error that names the field", err)
	}
}

func TestMoneyInTheDatabase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source any
		want   string
		fails  bool
	}{
		"bytes":           {source: []byte("1234.50"), want: "1234.50"},
		"text":            {source: "0.05", want: "0.05"},
		"integer":         {source: int64(7), want: "7.00"},
		"wider scale":     {source: "7.5000", want: "7.50"},
		"lossy scale":     {source: "7.505", fails: true},
		"null":            {source: nil, fails: true},
		"float":           {source: 1.5, fails: true},
		"not a number":    {source: "NaN", fails: true},
		"not even digits": {source: []byte("abc"), fails: true},
	} {
		var got lending.Money
		err := got.Scan(tc.source)
		if (err != nil) != tc.fails || err == nil && got.String() != tc.want {
			t.Errorf("%s: scanned %s, %v", name, got, err)
		}
	}
	if value, err := money(t, "12.5").Value(); err != nil || value != "12.50" {
		t.Errorf("Value() = %v, %v", value, err)
	}
}

func TestParsePercent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, want string
		err        error
	}{
		{text: "0", want: "0"},
		{text: "40", want: "40"},
		{text: "3.75", want: "3.75"},
		{text: "7.5000", want: "7.5"},
		{text: "0.0001", want: "0.0001"},
		{text: "100.0000", want: "100"},
		{text: "0003.75", want: "3.75"},
		{text: "100.0001", err: lending.ErrPercentRange},
		{text: "1000", err: lending.ErrPercentRange},
		{text: "3.12345", err: lending.ErrPercentSyntax},
		{text: "-1", err: lending.ErrPercentSyntax},
		{text: "3.75%", err: lending.ErrPercentSyntax},
		{text: "", err: lending.ErrPercentSyntax},
		{text: "1e1", err: lending.ErrPercentSyntax},
	} {
		got, err := lending.ParsePercent(tc.text)
		if !errors.Is(err, tc.err) || err == nil && got.String() != tc.want {
			t.Errorf("ParsePercent(%q) = %s, %v; want %q, %v", tc.text, got, err, tc.want, tc.err)
		}
	}
}

func TestPercentTravels(t *testing.T) {
	t.Parallel()
	var got lending.Percent
	if err := got.Scan([]byte("3.7500")); err != nil || got.String() != "3.75" {
		t.Errorf("scanned %s, %v", got, err)
	}
	if value, err := got.Value(); err != nil || value != "3.75" {
		t.Errorf("Value() = %v, %v", value, err)
	}
	if out, err := json.Marshal(got); err != nil || string(out) != `"3.75"` {
		t.Errorf("marshalled %s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`"6.50"`), &got); err != nil || !got.Equal(percent(t, "6.5")) {
		t.Errorf("unmarshalled %s, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`6.5`), &got); err == nil {
		t.Error("a JSON number is taken for a percentage")
	}
	if err := got.Scan(nil); err == nil {
		t.Error("NULL is taken for a percentage")
	}
	if !(lending.Percent{}).IsZero() || got.IsZero() {
		t.Error("only the zero value is zero")
	}
}

func TestErrorsNameTheField(t *testing.T) {
	t.Parallel()
	var errs lending.FieldErrors
	errs.Money("requested_amount", "1.234")
	errs.Money("fine", "1.23")
	errs.Percent("rate", "x")
	errs.Term("term", "12 months")
	err := errs.Err()
	wantCode(t, err, lending.CodeValidation)
	if got := strings.Join(wrongFields(err), " "); got != "requested_amount rate term" {
		t.Errorf("faults name %q", got)
	}
	want := `"requested_amount" must be a decimal number without a sign, with up to 2 ` +
		`decimal places and without commas, such as 24999.99`
	if err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}
