package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
)

func TestObjectNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const uid = "0b8f6c1e-5a1d-4c39-9a0e-3f6f0d7c2a11"
	for _, test := range []struct {
		name string
		body string
		read func(body *object)
		want []string
	}{
		{"text is absent", `{}`, func(o *object) { o.text("a", 9) }, []string{`"a" is required`}},
		{"text is null", `{"a":null}`, func(o *object) { o.text("a", 9) }, []string{`"a" is required`}},
		{
			"text is a number", `{"a":1}`, func(o *object) { o.text("a", 9) },
			[]string{`"a" must be a string`},
		},
		{
			"text is too long", `{"a":"0123456789"}`, func(o *object) { o.text("a", 9) },
			[]string{`"a" must have at most 9 characters`},
		},
		{
			"text has a NUL", `{"a":"x\u0000"}`, func(o *object) { o.text("a", 9) },
			[]string{`"a" must be one line without control characters`},
		},
		{"optional text is blank", `{"a":"  "}`, func(o *object) { o.optionalText("a", 9) }, nil},
		{
			"amount is a number", `{"a":1.5}`, func(o *object) { o.money("a") },
			[]string{`"a" must be a string such as "1234.50"`},
		},
		{
			"amount is zero", `{"a":"0.00"}`, func(o *object) { o.money("a") },
			[]string{`"a" must be greater than 0`},
		},
		{
			"email is no address", `{"b":{"a":"x y"}}`, func(o *object) { o.child("b").email("a") },
			[]string{`"b.a" is not an e-mail address such as ana@example.com`},
		},
		{
			"email is too long", `{"a":"` + strings.Repeat("x", maxEmail+1) + `"}`,
			func(o *object) { o.email("a") },
			[]string{fmt.Sprintf(`"a" must have at most %d characters`, maxEmail)},
		},
		{
			"email is blank", `{"a":" "}`, func(o *object) { o.email("a") }, []string{`"a" is required`},
		},
		{
			"uid is short", `{"a":"0b8f6c1e5a1d4c399a0e3f6f0d7c2a11"}`, func(o *object) { o.uid("a") },
			[]string{`"a" must be a UUID`},
		},
		{"uid is right", `{"a":"` + uid + `"}`, func(o *object) { o.uid("a") }, nil},
		{
			"uids are no array", `{"a":"` + uid + `"}`, func(o *object) { o.optionalUIDs("a") },
			[]string{`"a" must be an array of UUIDs`},
		},
		{
			"uids are none", `{"a":["x","` + uid + `","y"]}`, func(o *object) { o.optionalUIDs("a") },
			[]string{`"a[0]" must be a UUID`, `"a[2]" must be a UUID`},
		},
		{
			"uids are too many", `{"a":` + manyUIDs(101) + `}`,
			func(o *object) { o.optionalUIDs("a") },
			[]string{`"a" must have at most 100 different entries`},
		},
		{
			"uids are few, many times",
			`{"a":["` + strings.Repeat(uid+`","`+strings.ToUpper(uid)+`","`, 1000) + uid + `"]}`,
			func(o *object) {
				if uids := o.optionalUIDs("a"); len(uids) != 1 {
					o.errs.Add("a", "%d were read", len(uids))
				}
			},
			nil,
		},
		{
			"child is no object", `{"a":[]}`, func(o *object) { o.child("a").text("b", 9) },
			[]string{`"a" must be an object`, `"a.b" is required`},
		},
		{
			"child's field", `{"a":{"b":7}}`, func(o *object) { o.child("a").text("b", 9) },
			[]string{`"a.b" must be a string`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			body, err := parseObject([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			test.read(body)
			var got []string
			for _, problem := range *body.errs {
				got = append(got, problem.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBodyIsOneObject(t *testing.T) {
	t.Parallel()
	for body, accepted := range map[string]bool{
		`{}`: true, " {\"a\":1}\r\n\t ": true,
		``: false, `null`: false, `[]`: false, `{`: false, `{}{}`: false, `{}}`: false, `{}]`: false,
		`{} ,`: false, `{} x`: false, "{}\x00": false,
	} {
		_, err := parseObject([]byte(body))
		if (err == nil) != accepted {
			t.Errorf("%q: %v", body, err)
		}
		if err != nil && lending.ErrorCode(err) != lending.CodeValidation {
			t.Errorf("%q is refused with %v", body, err)
		}
	}
}

func TestMalformedBodiesSayWhere(t *testing.T) {
	t.Parallel()
	const wanted = "the body must be one JSON object"
	for body, want := range map[string]string{
		" ":                                   wanted + ", but is empty",
		`["a"]`:                               wanted,
		"{\"a\":\"\xe9\"":                     "the body must be UTF-8",
		"\uFEFF{}":                            "leave out the byte order mark at its beginning",
		`{"a": "b"`:                           "it ends after byte 9, before it is complete",
		"{\"a\": 1,\n}":                       `"}" at byte 10 follows a comma`,
		`{"a": [1 , ]}`:                       `"]" at byte 12 follows a comma`,
		`{'a': 1}`:                            `"'" at byte 2 is not allowed there`,
		`{"a": é}`:                            `"é" at byte 7 is not allowed there`,
		`{}{}`:                                `"{" at byte 3 is not allowed there`,
		"{}\x00":                              `"\x00" at byte 3 is not allowed there`,
		`{"a":` + strings.Repeat("[", 20_000): "it nests too deeply at byte 10005",
	} {
		_, err := parseObject([]byte(body))
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", body, err, want)
		}
	}
}

// FuzzJSONBody reads hostile bodies as every operation does. The result must be a refusal
// with a code, or values that the database can store.
func FuzzJSONBody(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `null`, `{"requested_amount":"25000.00"}`, `{"a":1}{"b":2}`, "\xff", `{"a":"\u0000"}`,
		`{"title":"\ud800"}`, `{"title":"\ud83d\ude00\\ud800"}`, `{"\udc00":1,}`,
		`{"borrower":{"first_name":"B","last_name":"B","email":"b@b.example"},"project":{"name":"P"}}`,
		`{"thrive_application_uid":"0b8f6c1e-5a1d-4c39-9a0e-3f6f0d7c2a11","linked_application_uids":[1]}`,
		`{"status":"Approved","term":"12","title":"x"}`, `{"borrower":[],"project":{"name":{"name":1}}}`,
		`{"requested_amount":"1e9","requested_amount":"2"}`, `{"a":` + strings.Repeat(`[`, 200),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, err := parseObject(raw)
		if err != nil {
			if _, ok := errors.AsType[*lending.Error](err); !ok {
				t.Fatalf("refused with an internal error: %v", err)
			}
			return
		}
		request := readNewApplication(body)
		readTerms(body)
		parsed(body, "status", lending.ParseApplicationStatus)
		body.uid("thrive_application_uid")
		body.optionalUIDs("linked_application_uids")
		title := body.text("title", maxLine)
		for _, text := range []string{request.Borrower.FirstName, request.Project.Name, title} {
			if len(*body.errs) == 0 && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
				t.Errorf("accepted %q", text)
			}
		}
		if len(*body.errs) == 0 && !request.RequestedAmount.IsPositive() {
			t.Errorf("accepted the amount %s", request.RequestedAmount)
		}
	})
}

// manyUIDs returns an array of n different UUIDs.
func manyUIDs(n int) string {
	uids := make([]string, n)
	for i := range uids {
		uids[i] = strconv.Quote(uuid.NewString())
	}
	return "[" + strings.Join(uids, ",") + "]"
}
