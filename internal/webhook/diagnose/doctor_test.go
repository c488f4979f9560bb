package diagnose

import (
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
		})
	}
}

// The doctor never takes a wrong signature for a right one, nor crashes on
// what is pasted.
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
		right := strings.EqualFold(strings.TrimSpace(signature), sender.Sign(key, body))
		if right != (verdict.Finding == FoundValid) && !strings.ContainsAny(signature, ":=") {
			t.Errorf("finding %q, right is %v", verdict.Finding, right)
		}
		if verdict.Explanation == "" {
			t.Error("no explanation")
		}
	})
}
