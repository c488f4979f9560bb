package sender

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

// pairs are names and values.
type pairs [][2]string

func (p pairs) headers() []Header {
	var headers []Header
	for _, pair := range p {
		headers = append(headers, Header{Name: pair[0], Value: pair[1]})
	}
	return headers
}

func TestCheckHeaders(t *testing.T) {
	t.Parallel()
	many := func(n int) pairs {
		var headers pairs
		for i := range n {
			headers = append(headers, [2]string{fmt.Sprintf("x-%d", i), "v"})
		}
		return headers
	}
	printableASCII := make([]byte, 0, 95)
	for c := byte('!'); c <= '~'; c++ {
		printableASCII = append(printableASCII, c)
	}
	tests := []struct {
		name    string
		headers pairs
		fields  []string // the fields with errors; nil means accepted
		word    string
	}{
		{"none", nil, nil, ""},
		{"several", pairs{{"X-Api-Key", "abc"}, {"x-env", "prod"}}, nil, ""},
		{"empty value", pairs{{"x-empty", ""}}, nil, ""},
		{"every printable character", pairs{{"x", string(printableASCII)}}, nil, ""},
		{"spaces and tabs inside", pairs{{"x", "a b\tc"}}, nil, ""},
		{"every token character", pairs{{"!#$%&'*+-.^_`|~09az", "v"}}, nil, ""},
		{"longest value", pairs{{"x", strings.Repeat("v", maxHeaderValue)}}, nil, ""},
		{"longest name", pairs{{strings.Repeat("n", maxHeaderName), "v"}}, nil, ""},
		{"fifty", many(maxHeaders), nil, ""},
		{"replaced defaults", pairs{{"User-Agent", "x"}, {"Content-Type", "x"}}, nil, ""},
		{"authentication", pairs{{"Authorization", "x"}, {"X-HMAC-Signature", "x"}}, nil, ""},
		{"other names of the connection", pairs{
			{"upgrade", "x"},
			{"te", "x"},
			{"trailer", "x"},
			{"keep-alive", "x"},
			{"proxy-connection", "x"},
			{"expect", "x"},
		}, nil, ""},

		{"host", pairs{{"Host", "x"}}, []string{"headers[0].name"}, "cannot be set"},
		{
			"content-length",
			pairs{{"CONTENT-LENGTH", "1"}},
			[]string{"headers[0].name"},
			"cannot be set",
		},
		{"connection", pairs{{"connection", "x"}}, []string{"headers[0].name"}, "cannot be set"},
		{
			"transfer-encoding",
			pairs{{"Transfer-Encoding", "x"}},
			[]string{"headers[0].name"},
			"cannot be set",
		},
		{"our own", pairs{{"X-Drawbridge-Event", "x"}}, []string{"headers[0].name"}, "x-drawbridge-"},
		{"another's", pairs{{"Webhook-Id", "x"}}, []string{"headers[0].name"}, "webhook-"},
		{"our prefix", pairs{{"x-drawbridge-", "x"}}, []string{"headers[0].name"}, "x-drawbridge-"},
		{"no name", pairs{{"", "x"}}, []string{"headers[0].name"}, "no name"},
		{"a space in the name", pairs{{"x y", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a space after the name", pairs{{"host ", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a colon in the name", pairs{{":authority", "x"}}, []string{"headers[0].name"}, "not valid"},
		{
			"a line end in the name",
			pairs{{"x\r\nhost", "x"}},
			[]string{"headers[0].name"},
			"not valid",
		},
		{"beyond ASCII in the name", pairs{{"x-ä", "x"}}, []string{"headers[0].name"}, "not valid"},
		{"a Kelvin sign", pairs{{"x-\u212aey", "x"}}, []string{"headers[0].name"}, "not valid"},
		{
			"name too long",
			pairs{{strings.Repeat("n", maxHeaderName+1), "v"}},
			[]string{"headers[0].name"},
			"at most 256",
		},
		{
			"value too long",
			pairs{{"x", strings.Repeat("v", maxHeaderValue+1)}},
			[]string{"headers[0].value"},
			"at most 4096",
		},
		{
			"a line end in the value",
			pairs{{"x", "a\r\nhost: b"}},
			[]string{"headers[0].value"},
			"position 2",
		},
		{"NUL in the value", pairs{{"x", "a\x00"}}, []string{"headers[0].value"}, "printable"},
		{"DEL in the value", pairs{{"x", "\x7f"}}, []string{"headers[0].value"}, "printable"},
		{"beyond ASCII in the value", pairs{{"x", "ä"}}, []string{"headers[0].value"}, "printable"},
		{"twice", pairs{{"x", "1"}, {"x", "2"}}, []string{"headers[1].name"}, "given twice"},
		{
			"twice in another case",
			pairs{{"X-A", "1"}, {"b", ""}, {"x-a", "2"}},
			[]string{"headers[2].name"},
			"given twice",
		},
		{"too many", many(maxHeaders + 1), []string{"headers"}, "at most 50"},
		{
			"everything at once",
			pairs{{"host", "a"}, {"x", "\n"}, {"", "b"}},
			[]string{"headers[0].name", "headers[1].value", "headers[2].name"},
			"cannot be set",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			valid, err := CheckHeaders(test.headers.headers())
			if test.fields == nil {
				if err != nil || len(valid) != len(test.headers) {
					t.Fatalf("%d of %d headers, error %v", len(valid), len(test.headers), err)
				}
				for i, header := range valid {
					want := Header{Name: strings.ToLower(test.headers[i][0]), Value: test.headers[i][1]}
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
			for _, problem := range refusal.Details {
				fields = append(fields, problem.Field)
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
	valid, err := CheckHeaders([]Header{{Name: "X", Value: " \ta b\t "}})
	if err != nil || valid[0] != (Header{Name: "x", Value: "a b"}) {
		t.Errorf("headers %q, error %v", valid, err)
	}
}

func TestCheckHeadersNeverQuotesAValue(t *testing.T) {
	t.Parallel()
	const key = "key-0123456789"
	for _, value := range []string{key + "\n", key + strings.Repeat("x", maxHeaderValue)} {
		_, err := CheckHeaders([]Header{{Name: "x-api-key", Value: value}})
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
		{"x-api-key: abc", Header{Name: "x-api-key", Value: "abc"}, true},
		{"X-Api-Key:abc", Header{Name: "X-Api-Key", Value: "abc"}, true},
		{"x: a:b", Header{Name: "x", Value: "a:b", Plain: true}, true},
		{"x:", Header{Name: "x", Plain: true}, true},
		{" x : \t a\t", Header{Name: "x", Value: "a", Plain: true}, true},
		{": a", Header{Value: "a", Plain: true}, true}, // CheckHeaders refuses it
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

// Only whole words of a name decide whether an unmarked header is secret.
func TestHeadersSoundSecret(t *testing.T) {
	t.Parallel()
	for line, secret := range map[string]bool{
		"X-Api-Key: a": true, "x_auth: a": true, "authorization: a": true, "x-apikey: a": true,
		"x-access-TOKEN: a": true, "client_secret: a": true, "x-password: a": true, "x-pin: a": true,
		"set-cookie: a": true, "x-session-id: a": true, "x-signature: a": true,
		"x-credential: a": true, "x-tenant: a": false, "x-monkey: a": false, "x-author: a": false,
		"x-spinner: a": false, "content-type: a": false, "x-keyboard: a": false,
	} {
		if header, err := ParseHeader(line); err != nil || header.Plain == secret {
			t.Errorf("%s: plain is %v, error %v", line, header.Plain, err)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, value, want string
		plain             bool
	}{
		{"content-type", "application/json", "application/json", true},
		{"content-type", "application/json", "[hidden]", false},
		{"x-api-key", "abc", "abc", true},
		{"authorization", "Bearer abc", "Bearer [hidden]", false},
		{"Authorization", "basic abc", "basic [hidden]", false},
		{"authorization", "abc", "[hidden]", false},
		{"authorization", "my-own abc", "[hidden]", false},
		{"x-env", "production", "[hidden]", false},
		{"x-empty", "", "", false},
	}
	for _, test := range tests {
		header := Header{Name: test.name, Value: test.value, Plain: test.plain}
		got := Mask([]Header{header})[0]
		if got != (Header{Name: test.name, Value: test.want}) {
			t.Errorf("Mask(%s) = %#v, want %q", test.name, got, test.want)
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
	// JSON shows the value, to those who may see it.
	if text, err := json.Marshal(Header{Name: "x-env", Value: "prod"}); err != nil ||
		string(text) != `{"name":"x-env","value":"prod"}` {
		t.Errorf("JSON %s, %v", text, err)
	}
}

// Accepted headers fit on one line of a request and are parsed back unchanged.
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
