package diagnose

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

const testSecret = "whsec_0Yb3kD2sJm8xQv5nR7tW1zC4fH6jL9pA"

// testBody is a payload with exactly the fields of a funding event.
var testBody = []byte(`{"application_id":"7d5f0c6e-2f1b-4a57-9a55-1f3f6f6f2a10",` +
	`"status":"FUNDING_SETTLED","timestamp":"2026-11-21T09:30:00.123456Z"}`)

func TestExamineSignature(t *testing.T) {
	t.Parallel()
	current, previous := secret.New(testSecret), secret.New("the-old-secret")
	body := string(testBody)
	offer := `{"status":"Approved","application_id":"a","data":` +
		`{"approved_offer":{"term":"120","x":"a: b, \"c\""}}}`
	sign := func(key secret.String, text string) string { return sender.Sign(key, []byte(text)) }
	var indented strings.Builder
	encoder := json.NewEncoder(&indented)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(json.RawMessage(offer)); err != nil {
		t.Fatal(err)
	}
	pythonStyle := `{"status": "Approved", "application_id": "a", "data": {"approved_offer": ` +
		`{"term": "120", "x": "a: b, \"c\""}}}`
	sortedStyle := `{"application_id":"a","data":` +
		`{"approved_offer":{"term":"120","x":"a: b, \"c\""}},"status":"Approved"}`
	sum := sender.Mac(current, testBody)
	tests := []struct {
		name            string
		body, signature string
		sent            string // "" means not known
		want            SignatureFinding
		match           secret.Match
	}{
		{"right", body, sign(current, body), "", FoundValid, secret.MatchCurrent},
		{"in capitals", body, strings.ToUpper(sign(current, body)), "", FoundValid, secret.MatchCurrent},
		{
			"in capitals, of the previous", body, strings.ToUpper(sign(previous, body)), "",
			FoundPrevious, secret.MatchPrevious,
		},
		{"with white space", body, " " + sign(current, body) + "\n", "", FoundValid, secret.MatchCurrent},
		{"with a scheme", body, "sha256=" + sign(current, body), "", FoundValid, secret.MatchCurrent},
		{
			"as a header line", body, "X-HMAC-Signature: " + sign(current, body), "", FoundValid,
			secret.MatchCurrent,
		},
		{"previous", body, sign(previous, body), "", FoundPrevious, secret.MatchPrevious},
		{"base64", body, base64.StdEncoding.EncodeToString(sum), "", FoundEncoding, secret.MatchCurrent},
		{
			"base64 for URLs", body, base64.RawURLEncoding.EncodeToString(sum), "", FoundEncoding,
			secret.MatchCurrent,
		},
		{
			"newline added to the body", body + "\n", sign(current, body), "", FoundNewline,
			secret.MatchCurrent,
		},
		{
			"newline added before signing", body, sign(current, body+"\n"), "", FoundNewline,
			secret.MatchCurrent,
		},
		{"CRLF added", body + "\r\n", sign(previous, body), "", FoundNewline, secret.MatchPrevious},
		{"line ends converted", "{\r\n}", sign(current, "{\n}"), "", FoundNewline, secret.MatchCurrent},
		{"indented", indented.String(), sign(current, offer), "", FoundReserialised, secret.MatchCurrent},
		{
			"signed as Python writes", offer, sign(current, pythonStyle), "", FoundReserialised,
			secret.MatchCurrent,
		},
		{
			"pasted as Python writes", pythonStyle, sign(current, offer), "", FoundReserialised,
			secret.MatchCurrent,
		},
		{
			"signed with sorted keys", offer, sign(current, sortedStyle), "", FoundReserialised,
			secret.MatchCurrent,
		},
		{
			"pasted with sorted keys, sent known", sortedStyle, sign(current, offer), offer,
			FoundReserialised, secret.MatchCurrent,
		},
		{
			"pasted with sorted keys, sent unknown", sortedStyle, sign(current, offer), "",
			FoundOtherSecret, secret.MatchNone,
		},
		{
			"another body, sent known", `{"a":1}`, sign(current, offer), offer, FoundChangedBody,
			secret.MatchCurrent,
		},
		{
			"not JSON, sent known", "a", sign(current, offer), offer, FoundChangedBody,
			secret.MatchCurrent,
		},
		{"another secret", body, sign(secret.New("x"), body), body, FoundOtherSecret, secret.MatchNone},
		{"empty secret", body, sign(secret.String{}, body), body, FoundOtherSecret, secret.MatchNone},
		{"nothing", body, "", "", FoundMalformed, secret.MatchNone},
		{"too short", body, sign(current, body)[:62], "", FoundMalformed, secret.MatchNone},
		{"SHA-1", body, strings.Repeat("ab", 20), "", FoundMalformed, secret.MatchNone},
		{"not hex", body, strings.Repeat("zz!", 21), "", FoundMalformed, secret.MatchNone},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := SignatureCase{
				Body: []byte(test.body), Signature: test.signature, Current: current, Previous: previous,
			}
			if test.sent != "" {
				c.Sent = []byte(test.sent)
			}
			got := Signature(c)
			if got.Finding != test.want || got.Secret != test.match {
				t.Errorf("finding %q by %q, want %q by %q", got.Finding, got.Secret, test.want, test.match)
			}
			if got.Explanation == "" || got.Next == "" ||
				strings.Contains(fmt.Sprint(got), testSecret) {
				t.Errorf("verdict %+v", got)
			}
			if strings.Contains(got.Explanation, "capitals") != strings.HasPrefix(test.name, "in capitals") {
				t.Errorf("of the case of letters: %+v", got)
			}
		})
	}
}

// A signature of a body other than the one sent is not valid, however well it was computed.
func TestExamineSignatureOfAnotherBody(t *testing.T) {
	t.Parallel()
	current, previous := secret.New(testSecret), secret.New("the-old-secret")
	sent := string(testBody)
	pretty := strings.ReplaceAll(sent, ",", ",\n  ")
	standard := base64.StdEncoding.EncodeToString(sender.Mac(current, []byte("evt.1."+pretty)))
	for _, test := range []struct {
		name, body, signature string
		want                  SignatureFinding
		says                  string
	}{
		{"the one sent", sent, sender.Sign(current, testBody), FoundValid, "this body and the current"},
		{
			"pretty-printed", pretty, sender.Sign(current, []byte(pretty)), FoundReserialised,
			"is not the one that was sent: it is the same JSON",
		},
		{
			"by the previous secret", pretty, sender.Sign(previous, []byte(pretty)), FoundReserialised,
			"written again. It was made with the previous secret.",
		},
		{
			"of Standard Webhooks", pretty, "v1," + standard, FoundReserialised,
			"is not the one that was sent: it is the same JSON",
		},
		{
			"with a newline", sent + "\n", sender.Sign(current, []byte(sent+"\n")), FoundNewline,
			"is not the one that was sent: a newline",
		},
		{
			"none at all", "", sender.Sign(current, nil), FoundChangedBody,
			"is not the one that was sent: its content is another",
		},
	} {
		got := Signature(SignatureCase{
			Body: []byte(test.body), Sent: testBody, Signature: test.signature,
			Stamps: []string{"evt.1."}, Current: current, Previous: previous,
		})
		if got.Finding != test.want || !strings.Contains(got.Explanation, test.says) {
			t.Errorf("%s: %+v, want %q that says %q", test.name, got, test.want, test.says)
		}
	}
}

// TestDeepTextsHaveNoOtherForms: indenting a text nested thousands of levels deep would
// take gigabytes.
func TestDeepTextsHaveNoOtherForms(t *testing.T) {
	t.Parallel()
	for levels, want := range map[int]bool{maxLevels: true, maxLevels + 1: false, 5000: false} {
		for open, closed := range map[string]string{"[": "]", `{"a":`: "}"} {
			text := strings.Repeat(open, levels) + "1" + strings.Repeat(closed, levels)
			if forms := rewritten([]byte(text)); len(forms) > 0 != want {
				t.Errorf("%d levels of %s have %d other forms", levels, open, len(forms))
			}
		}
	}
}

// Standard Webhooks signatures cover the event and the time of the attempt too.
func TestExamineStandardSignature(t *testing.T) {
	t.Parallel()
	current, previous := secret.New(testSecret), secret.New("the-old-secret-that-was")
	const body, first, second = `{"a": 1}`, "evt.1764000000.", "evt.1764000060."
	sign := func(key secret.String, text string) string {
		return "v1," + base64.StdEncoding.EncodeToString(sender.Mac(key, []byte(text)))
	}
	valid := sign(current, second+body)
	lines := func(signature string) string {
		return "webhook-id: evt\nwebhook-timestamp: 1764000060\nWebhook-Signature: " + signature
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	decoded := secret.New(string(key))
	known := []string{first, second}
	for _, test := range []struct {
		name, body, signature string
		stamps                []string
		want                  SignatureFinding
		match                 secret.Match
	}{
		{"of the second attempt", body, valid, known, FoundValid, secret.MatchCurrent},
		{"with its headers", body, lines(valid), nil, FoundValid, secret.MatchCurrent},
		{
			"with the headers of another attempt", body, lines(sign(current, first+body)), known,
			FoundOtherSecret, secret.MatchNone,
		},
		{
			"in an overlap", body, valid + " " + sign(previous, second+body), known, FoundValid,
			secret.MatchCurrent,
		},
		{
			"by the former secret", body, sign(previous, first+body), known, FoundPrevious,
			secret.MatchPrevious,
		},
		{
			"over the body written again", body, sign(current, first+`{"a":1}`), known,
			FoundReserialised, secret.MatchCurrent,
		},
		{"over the body alone", body, sign(current, body), known, FoundUnstamped, secret.MatchCurrent},
		{
			"by the decoded secret", body, sign(decoded, first+body), known, FoundDecodedSecret,
			secret.MatchCurrent,
		},
		{"of nothing known", body, valid, nil, FoundNoStamp, secret.MatchNone},
		{"by another secret", body, sign(secret.New("x"), first+body), known, FoundOtherSecret, ""},
		{"of another version", body, "v2," + valid[3:], known, FoundMalformed, ""},
		{"cut", body, valid[:40], known, FoundMalformed, ""},
		{"with something behind", body, valid + " " + valid[3:], known, FoundMalformed, ""},
	} {
		got := Signature(SignatureCase{
			Body: []byte(test.body), Signature: test.signature, Stamps: test.stamps,
			Current: current, Previous: previous,
		})
		want := cmp.Or(test.match, secret.MatchNone)
		if got.Finding != test.want || got.Secret != want || got.Next == "" {
			t.Errorf("%s: %q by %q, want %q by %q", test.name, got.Finding, got.Secret, test.want, want)
		}
	}
}

// The doctor never takes a wrong signature for a valid one, and never crashes on pasted
// text.
func FuzzExamineSignature(f *testing.F) {
	key := secret.New(testSecret)
	f.Add(testBody, sender.Sign(key, testBody), []byte(nil))
	f.Add([]byte("{\"a\": [1, 2]}\n"), sender.Sign(key, []byte(`{"a":[1,2]}`)), []byte(`{"a":[1,2]}`))
	f.Add([]byte(`"\`), "x", []byte("{"))
	f.Add([]byte(`{"a":"\ud800"}`), "sha256=00", []byte(`{"a":1e999}`))
	f.Fuzz(func(t *testing.T, body []byte, signature string, sent []byte) {
		verdict := Signature(SignatureCase{
			Body: body, Signature: signature, Sent: sent, Current: key,
		})
		right := strings.EqualFold(strings.TrimSpace(signature), sender.Sign(key, body)) &&
			(sent == nil || bytes.Equal(body, sent))
		if right != (verdict.Finding == FoundValid) && !strings.ContainsAny(signature, ":=") {
			t.Errorf("finding %q, right is %v", verdict.Finding, right)
		}
		if verdict.Explanation == "" {
			t.Error("no explanation")
		}
	})
}
