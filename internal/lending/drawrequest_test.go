package lending_test

import (
	"slices"
	"testing"

	"drawbridge/internal/lending"
)

func TestParseDrawRequest(t *testing.T) {
	t.Parallel()
	const (
		reduced = "updatedDisbursementAmount"
		revised = "updatedLoanAmount"
		early   = "projectCompletedEarly"
	)
	for name, tc := range map[string]struct {
		values map[string]string
		// want are the fields that the error names, nil for none.
		want []string
	}{
		"empty":             {nil, nil},
		"reduced":           {map[string]string{reduced: "10.5"}, nil},
		"revised":           {map[string]string{revised: "10"}, nil},
		"early":             {map[string]string{early: "true"}, nil},
		"early and revised": {map[string]string{early: "true", revised: "10"}, nil},
		"not early":         {map[string]string{early: "false", reduced: "10"}, nil},
		"zero is no syntax": {map[string]string{reduced: "0", revised: "0.00"}, nil},
		"huge": {
			map[string]string{reduced: "1000000000000", revised: "9999999999999.99"}, nil,
		},
		"huge and wrong":    {map[string]string{reduced: "10000000000000.123"}, []string{reduced}},
		"unknown parts":     {map[string]string{"note": "x"}, nil},
		"early and reduced": {map[string]string{early: "true", reduced: "10"}, []string{reduced}},
		"three decimals":    {map[string]string{reduced: "10.123"}, []string{reduced}},
		"empty amount":      {map[string]string{revised: ""}, []string{revised}},
		"negative":          {map[string]string{reduced: "-1"}, []string{reduced}},
		"upper case":        {map[string]string{early: "TRUE", reduced: "10"}, []string{reduced}},
		"mixed case":        {map[string]string{early: "False", reduced: "10"}, nil},
		"another letter":    {map[string]string{early: "falſe"}, []string{early}},
		"a number":          {map[string]string{early: "1"}, []string{early}},
		"an empty flag":     {map[string]string{early: ""}, []string{early}},
		"everything is wrong": {
			map[string]string{early: "x", reduced: "x", revised: "x"},
			[]string{reduced, revised, early},
		},
		"wrong and forbidden": {
			map[string]string{early: "true", reduced: "x"},
			[]string{reduced, reduced},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := lending.ParseDrawRequest(tc.values, lending.DocumentsAbsent)
			if got := wrongFields(err); !slices.Equal(got, tc.want) {
				t.Errorf("faults in %v (%v), want %v", got, err, tc.want)
			}
			if tc.want != nil {
				wantCode(t, err, lending.CodeValidation)
			}
		})
	}
}

func TestParseDrawRequestKeepsWhatWasAsked(t *testing.T) {
	t.Parallel()
	request, err := lending.ParseDrawRequest(map[string]string{
		"updatedLoanAmount": "900.5", "projectCompletedEarly": "true",
	}, lending.DocumentsGiven)
	wantCode(t, err, "")
	if request.UpdatedDisbursementAmount != nil || request.UpdatedLoanAmount.String() != "900.50" ||
		!request.ProjectCompletedEarly || request.Documents != lending.DocumentsGiven {
		t.Errorf("the request reads %+v", request)
	}
	request, err = lending.ParseDrawRequest(map[string]string{
		"updatedDisbursementAmount": "1", "projectCompletedEarly": "false",
	}, lending.DocumentsAbsent)
	wantCode(t, err, "")
	if request.UpdatedDisbursementAmount.String() != "1.00" || request.ProjectCompletedEarly {
		t.Errorf("the request reads %+v", request)
	}
}
