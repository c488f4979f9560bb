package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func TestCheckHeaders(t *testing.T) {
	t.Parallel()
	many := func(n int) []Header {
		var headers []Header
		for i := range n {
			headers = append(headers, Header{fmt.Sprintf("x-%d", i), "v"})
		}
		return headers
	}
	printableASCII := make([]byte, 0, 95)
	for c := byte('!'); c <= '~'; c++ {
		printableASCII = append(printableASCII, c)
	}
	tests := []struct {
		name    string
		headers []Header
		fields  []string // of the faults; nil means accepted
		word    string
	}{
		{"none", nil, nil, ""},
		{"several", []Header{{"X-Api-Key", "abc"}, {"x-env", "prod"}}, nil, ""},
		{"empty value", []Header{{"x-empty", ""}}, nil, ""},
		{"every printable character", []Header{{"x", string(printableASCII)}}, nil, ""},
		{"spaces and tabs inside", []Header{{"x", "a b\tc"}}, nil, ""},
		{"every token character", []Header{{"!#$%&'*+-.^_`|~09az", "v"}}, nil, ""},
		{"longest value", []Header{{"x", strings.Repeat("v", maxHeaderValue)}}, nil, ""},
		{"longest name", []Header{{strings.Repeat("n", maxHeaderName), "v"}}, nil, ""},
		{"fifty", many(maxHeaders), nil, ""},
		{"replaced defaults", []Header{{"User-Agent", "x"}, {"Content-Type", "x"}}, nil, ""},
		{"authentication", []Header{{"Authorization", "x"}, {"X-HMAC-Signature", "x"}}, nil, ""},
		{"other names of the connection", []Header{
			{"upgrade", "x"},
			{"te", "x"},
			{"trailer", "x"},
			{"keep-alive", "x"},
			{"proxy-connection", "x"},
			{"expect", "x"},
		}, nil, ""},

		{"host", []Header{{"Host", "x"}}, []string{"headers[0].name"}, "cannot be set"},
		{
			"content-length",
			[]Header{{"CONTENT-LENGTH", "1"}},
			[]string{"headers[0].name"},
			"cannot be set",
		},
		{"connection", []Header{{"connection", "x"}}, []string{"headers[0].name"}, "cannot be set"},
		{
			"transfer-encoding",
			[]Header{{"Transfer-Encoding", "x"}},
			[]string{"headers[0].name"},
			"cannot be set",
		},
		{"our own", []Header{{"X-Drawbridge-Event", "x"}}, []string{"headers[0].name"}, "x-drawbridge-"},
		{"our prefix", []Header{{"x-drawbridge-", "x"}}, []string{"headers[0].name"}, "x-drawbridge-"},
		{"no name", []Header{{"", "x"}}, []string{"headers[0].name"}, "no name"},
		{"a space in the name", []Header{{"x y", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a space after the name", []Header{{"host ", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a colon in the name", []Header{{":authority", "x"}}, []string{"headers[0].name"}, "not valid"},
		{
			"a line end in the name",
			[]Header{{"x\r\nhost", "x"}},
			[]string{"headers[0].name"},
			"not valid",
		},
		{"beyond ASCII in the name", []Header{{"x-ä", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a Kelvin sign", []Header{{"x-\u212aey", "x"}}, []string{"headers[0].name"}, "not valid"},
		{
			"name too long",
			[]Header{{strings.Repeat("n", maxHeaderName+1), "v"}},
			[]string{"headers[0].name"},
			"at most 256",
		},
		{
			"value too long",
			[]Header{{"x", strings.Repeat("v", maxHeaderValue+1)}},
			[]string{"headers[0].value"},
			"at most 4096",
		},
		{
			"a line end in the value",
			[]Header{{"x", "a\r\nhost: b"}},
			[]string{"headers[0].value"},
			"position 2",
		},
		{"NUL in the value", []Header{{"x", "a\x00"}}, []string{"headers[0].value"}, "printable"},
		{"DEL in the value", []Header{{"x", "\x7f"}}, []string{"headers[0].value"}, "printable"},
		{"beyond ASCII in the value", []Header{{"x", "ä"}}, []string{"headers[0].value"}, "printable"},
		{"twice", []Header{{"x", "1"}, {"x", "2"}}, []string{"headers[1].name"}, "given twice"},
		{
			"twice in another case",
			[]Header{{"X-A", "1"}, {"b", ""}, {"x-a", "2"}},
			[]string{"headers[2].name"},
			"given twice",
		},
		{"too many", many(maxHeaders + 1), []string{"headers"}, "at most 50"},
		{
			"everything at once",
			[]Header{{"host", "a"}, {"x", "\n"}, {"", "b"}},
			[]string{"headers[0].name", "headers[1].value", "headers[2].name"},
			"cannot be set",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			valid, err := CheckHeaders(test.headers)
			if test.fields == nil {
				if err != nil || len(valid) != len(test.headers) {
					t.Fatalf("%d of %d headers, error %v", len(valid), len(test.headers), err)
				}
				for i, header := range valid {
					want := Header{strings.ToLower(test.headers[i].Name), test.headers[i].Value}
					if header != want {
						t.Errorf("header %d is %q", i, header)
					}
				}
				return
			}
			refusal, ok := errors.AsType[*lending.Error](err)
			if !ok || refusal.Code != lending.CodeValidation || valid != nil {
				t.Fatalf("headers %v, error %v", valid, err)
			}
			var fields []string
			for _, fault := range refusal.Details {
				fields = append(fields, fault.Field)
			}
			if !slices.Equal(fields, test.fields) || !strings.Contains(refusal.Message, test.word) {
				t.Errorf("fields %v, message %q; want %v, %q", fields, refusal.Message, test.fields,
					test.word)
			}
		})
	}
}

func TestCheckHeadersTrimsValues(t *testing.T) {
	t.Parallel()
	valid, err := CheckHeaders([]Header{{"X", " \ta b\t "}})
	if err != nil || valid[0] != (Header{"x", "a b"}) {
		t.Errorf("headers %q, error %v", valid, err)
	}
}

func TestCheckHeadersNeverQuotesAValue(t *testing.T) {
	t.Parallel()
	const key = "key-0123456789"
	for _, value := range []string{key + "\n", key + strings.Repeat("x", maxHeaderValue)} {
		_, err := CheckHeaders([]Header{{"x-api-key", value}})
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("the error shows the value: %v", err)
		}
	}
	if _, err := ParseHeader(key); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("the error shows the line: %v", err)
	}
}

func TestParseHeader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want Header
		ok   bool
	}{
		{"x-api-key: abc", Header{"x-api-key", "abc"}, true},
		{"X-Api-Key:abc", Header{"X-Api-Key", "abc"}, true},
		{"x: a:b", Header{"x", "a:b"}, true},
		{"x:", Header{"x", ""}, true},
		{" x : \t a\t", Header{"x", "a"}, true},
		{": a", Header{"", "a"}, true}, // CheckHeaders refuses it
		{"x-api-key", Header{}, false},
		{"", Header{}, false},
	}
	for _, test := range tests {
		got, err := ParseHeader(test.line)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("ParseHeader(%q) = %#v, %v", test.line, got, err)
		}
		if err != nil && lending.ErrorCode(err) != lending.CodeValidation {
			t.Errorf("ParseHeader(%q): %v", test.line, err)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, want string }{
		{"content-type", "application/json", "application/json"},
		{"user-agent", "Solar/1", "Solar/1"},
		{"host", "hooks.example", "hooks.example"},
		{"x-drawbridge-event", "task.created", "task.created"},
		{"x-hmac-signature", "abc123", "abc123"},
		{"x-hmac-signature-previous", "abc123", "abc123"},
		{"authorization", "Bearer abc", "Bearer [hidden]"},
		{"Authorization", "basic abc", "basic [hidden]"},
		{"authorization", "abc", "[hidden]"},
		{"authorization", "my-own abc", "[hidden]"},
		{"x-api-key", "abc", "[hidden]"},
		{"x-env", "production", "[hidden]"},
		{"cookie", "a=b", "[hidden]"},
		{"x-empty", "", ""},
	}
	for _, test := range tests {
		header := Header{test.name, test.value}
		if got := Mask([]Header{header})[0]; got.Value != test.want || got.Name != test.name {
			t.Errorf("Mask(%s) = %q, want %q", test.name, got.Value, test.want)
		}
		if test.want == test.value {
			continue
		}
		shown := fmt.Sprintf("%v %s %+v %#v %q %x", header, header, []Header{header}, header, header,
			header) + slog.Any("h", header).Value.Resolve().String()
		if strings.Contains(shown, test.value) {
			t.Errorf("printing shows the value: %s", shown)
		}
	}
	// JSON is for those who may see it.
	if text, err := json.Marshal(Header{"x-env", "prod"}); err != nil ||
		string(text) != `{"name":"x-env","value":"prod"}` {
		t.Errorf("JSON %s, %v", text, err)
	}
}

// What is accepted fits on one line of a request and comes back the same.
func FuzzCheckHeaders(f *testing.F) {
	f.Add("X-Api-Key: abc")
	f.Add("host: x")
	f.Add("x: a\r\nhost: b")
	f.Add(" \t: \x00")
	f.Add("x-drawbridge-event: y")
	f.Add("\u212aeep-alive: y")
	f.Fuzz(func(t *testing.T, line string) {
		header, err := ParseHeader(line)
		if err != nil {
			return
		}
		valid, err := CheckHeaders([]Header{header})
		if err != nil {
			if lending.ErrorCode(err) != lending.CodeValidation {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		got := valid[0]
		if strings.ContainsAny(got.Name+got.Value, "\r\n\x00") || got.Name != strings.ToLower(got.Name) ||
			slices.Contains(forbiddenHeaders, got.Name) || strings.HasPrefix(got.Name, ownPrefix) {
			t.Fatalf("%q is accepted as %#v", line, got)
		}
		again, err := CheckHeaders(valid)
		if err != nil || again[0] != got {
			t.Fatalf("%q: a second check gives %#v, %v", line, again, err)
		}
	})
}
