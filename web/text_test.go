package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/app/apptest"
)

// bodyOf returns the body of a new application with some fields replaced.
func bodyOf(reference, first, project, more string) string {
	return `{"requested_amount":"1000.00","external_reference":"` + reference + `",` +
		`"borrower":{"first_name":"` + first + `","last_name":"Lima","email":"ana@example.com"},` +
		`"project":{"name":"` + project + `"}` + more + `}`
}

// saysNoText is the message for a text that the database cannot store.
const saysNoText = "must be UTF-8 text without NUL characters or unpaired surrogates"

// TestWhatIsNoTextIsRefused sends texts that the database cannot store, duplicate names,
// and names that mails would turn into links: each is reported, and nothing is created.
func TestWhatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P5050").String()
	task := "/v2/sandbox/application/" + uid + "/task"
	line := strings.Repeat("ü", 200)
	for _, test := range []struct {
		name, path, body string
		fields           []string
	}{
		{
			"NUL", "/v2/application", bodyOf("a", `A\u0000na`, "Roof", ""),
			[]string{"borrower.first_name"},
		},
		{"not UTF-8", "/v2/application", bodyOf("a", "Ana", "R\xffof", ""), []string{"project.name"}},
		{
			"half a pair", "/v2/application", bodyOf(`a\ud800`, `\udc00`, `\ud83d\ud83d`, `,"\ud800":1`),
			[]string{"external_reference", "borrower.first_name", "project.name", "\uFFFD"},
		},
		{"behind a backslash", "/v2/application", bodyOf("a", "\\\xff", "Roof", ""), nil},
		{"outside a text", "/v2/application", "\xff" + bodyOf("a", "Ana", "Roof", ""), nil},
		{
			"where nobody asks", "/v2/application",
			bodyOf("a", "Ana", "Roof", `,"notes":[{"by":"x\u0000"},"\u0000"]`),
			[]string{"notes[0].by", "notes[1]"},
		},
		{
			"in a name", "/v2/application", bodyOf("a", "Ana", "Roof", `,"no\u0000te":1`),
			[]string{"no\uFFFDte"},
		},
		{
			"given twice", "/v2/application",
			bodyOf("a", "Ana", "Roof", `,"requested_amount":"2.00","x":{"y":1,"y":1}`),
			[]string{"requested_amount", "x.y"},
		},
		{
			"links", "/v2/application", bodyOf("a", "http://x", "See WWW.example.com", ""),
			[]string{"borrower.first_name", "project.name"},
		},
		{
			"a long reference", "/v2/application", bodyOf(line+"u", "Ana", "Roof", ""),
			[]string{"external_reference"},
		},
		{
			"all at once", "/v2/application", bodyOf(line+"u", `A\u0000na`, "ftp://x", `,"x":"\u0000"`),
			[]string{"external_reference", "borrower.first_name", "project.name", "x"},
		},
		{"a task's title", task, `{"title":"Go to https://x.example"}`, []string{"title"}},
	} {
		answer := s.Do(apptest.Call{Method: http.MethodPost, Path: test.path, JSON: test.body})
		var fields []string
		for _, detail := range answer.Result.Error.Details {
			fields = append(fields, detail.Field)
		}
		if answer.Code() != "VALIDATION_ERROR" || !slices.Equal(fields, test.fields) {
			t.Errorf("%s: %s names %q, want %q", test.name, answer.Raw, fields, test.fields)
		}
	}
	for name, body := range map[string]string{
		"Latin-1":     bodyOf("\xe9", "Andr\xe9", "R\xe9fection", ""),
		"half a pair": bodyOf(`\ud83d`, `Ana\ud83d`, `\ude00`, ""),
	} {
		answer := s.Do(apptest.Call{Method: http.MethodPost, Path: "/v2/application", JSON: body})
		for _, detail := range answer.Result.Error.Details {
			if !strings.Contains(detail.Message, saysNoText) {
				t.Errorf("%s: %q does not say %q", name, detail.Message, saysNoText)
			}
		}
		if len(answer.Result.Error.Details) != 3 {
			t.Errorf("%s: %s names others than three fields", name, answer.Raw)
		}
	}
	made := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/application", JSON: bodyOf(line, "Ana", "Roof", ""),
	})
	if made.Status != http.StatusCreated || made.Text("external_reference") != line {
		t.Errorf("a reference of 200 characters: %s", made.Raw)
	}
	for query, field := range map[string]string{
		"?updatedLoanAmount=1%00": "updatedLoanAmount", "?x=%FF": "x",
		"?updatedLoanAmount=1&updatedLoanAmount=1": "updatedLoanAmount",
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/loan/" + uid + "/draw-preview" + query,
		})
		if answer.Code() != "VALIDATION_ERROR" || answer.Result.Error.Details[0].Field != field {
			t.Errorf("%s answers %s", query, answer.Raw)
		}
	}
}
