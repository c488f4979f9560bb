package web_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/calendar"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/statement"
)

// ledger returns a server on a Tuesday evening on which Home drew once, and the date.
func ledger(t *testing.T) (s *apptest.Server, clock *apptest.Clock, date string) {
	t.Helper()
	clock = apptest.NewClock()
	at := clock.Now().Truncate(24 * time.Hour).Add(18 * time.Hour)
	for at.Weekday() != time.Tuesday {
		at = at.Add(24 * time.Hour)
	}
	clock.Set(at)
	db := pgtest.New(t)
	db.Now = clock.Now
	s = apptest.StartServer(t, db).Furnish()
	s.Statements.Calendar = calendar.Calendar{} // days are those of UTC
	s.DrawSettled(s.Loan("P404020"))
	return s, clock, at.Format(time.DateOnly)
}

// freeze freezes the clock's present day, and leaves the clock after it.
func freeze(s *apptest.Server, clock *apptest.Clock) {
	s.T.Helper()
	clock.Set(clock.Now().Truncate(24 * time.Hour).Add(24*time.Hour + statement.Grace))
	if _, err := s.Statements.Freeze(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

func TestStatementsOverTheAPI(t *testing.T) {
	t.Parallel()
	s, clock, date := ledger(t)
	path := "/v2/statements/" + date
	open := s.Get(path)
	if open.Status != http.StatusOK || open.Text("state") != "open" ||
		open.Header.Get("x-drawbridge-statement-version") != "" {
		t.Errorf("the open day answers %s", open.Raw)
	}
	if listed := s.Get("/v2/statements"); !strings.Contains(string(listed.Raw), `"statements":[]`) {
		t.Errorf("before the freeze the list is %s", listed.Raw)
	}
	freeze(s, clock)
	frozen := s.Get(path)
	again := s.Get(path + "?version=1&format=json")
	if frozen.Text("state") != "frozen" || !bytes.Equal(frozen.Raw, again.Raw) ||
		frozen.Timestamp != frozen.Text("frozen_at") ||
		frozen.Header.Get("x-drawbridge-statement-version") != "1" ||
		frozen.Header.Get("x-drawbridge-statement-key") != frozen.Text("key_id") ||
		frozen.Header.Get("x-drawbridge-statement-signature") !=
			again.Header.Get("x-drawbridge-statement-signature") {
		t.Errorf("frozen it answers %s", frozen.Raw)
	}
	for name, call := range map[string]apptest.Call{
		"query":  {Method: http.MethodGet, Path: path + "?format=csv"},
		"accept": {Method: http.MethodGet, Path: path, Header: map[string]string{"Accept": "text/csv"}},
	} {
		content, header := s.Download(call)
		if !strings.HasPrefix(string(content), "record,date,version,") ||
			header.Get("Content-Disposition") != `attachment; filename="statement-`+date+`.csv"` {
			t.Errorf("by %s: %v %.80s", name, header, content)
		}
	}
	for query, field := range map[string]string{
		"/v2/statements/2026-02-30": "date", "/v2/statements/yesterday": "date",
		path + "?version=0": "version", path + "?format=xml": "format",
		"/v2/statements?since=today": "since", "/v2/statements?cursor=x": "cursor",
	} {
		answer := s.Do(apptest.Call{Method: http.MethodGet, Path: query, Departs: true})
		if answer.Status != http.StatusBadRequest || strings.Join(answer.Fields(), " ") != field {
			t.Errorf("%s answers %s", query, answer.Raw)
		}
	}
	for _, missing := range []string{path + "?version=2", "/v2/statements/2020-01-06"} {
		if answer := s.Get(missing); answer.Status != http.StatusNotFound {
			t.Errorf("%s answers %s", missing, answer.Raw)
		}
	}
}

// A merchant sees its own statements; a group sees all of its merchants' in the list, and
// single ones by naming the merchant.
func TestStatementsOfOthers(t *testing.T) {
	t.Parallel()
	s, clock, date := ledger(t)
	group, members := s.NewGroup("Group", 2)
	freeze(s, clock)
	stranger := s.NewAccount("Stranger") // created after the day
	list := func(as apptest.Account, query string) (merchants []string, next string) {
		answer := s.Do(apptest.Call{Method: http.MethodGet, Path: "/v2/statements?" + query, As: &as})
		var page struct {
			Statements []struct {
				MerchantUID string `json:"merchant_uid"`
			} `json:"statements"`
			NextCursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(answer.Result.Data, &page); err != nil {
			t.Fatalf("%s: %v", answer.Raw, err)
		}
		for _, one := range page.Statements {
			merchants = append(merchants, one.MerchantUID)
		}
		return merchants, page.NextCursor
	}
	get := func(as apptest.Account, header map[string]string) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/statements/" + date, As: &as, Header: header,
		})
	}
	if got, _ := list(stranger, ""); len(got) != 0 {
		t.Errorf("a stranger sees %v", got)
	}
	if answer := get(stranger, nil); answer.Status != http.StatusNotFound {
		t.Errorf("a stranger reads %s", answer.Raw)
	}
	if got, _ := list(s.Home, ""); len(got) != 1 || got[0] != s.Home.MerchantUID.String() {
		t.Errorf("Home sees %v", got)
	}
	sibling := members[0].MerchantUID.String()
	if got, _ := list(members[0], ""); len(got) != 1 || got[0] != sibling {
		t.Errorf("one merchant of the group sees %v", got)
	}
	if answer := get(members[0], nil); answer.Text("merchant_uid") != sibling {
		t.Errorf("one merchant of the group reads %s", answer.Raw)
	}
	first, next := list(group, "limit=1")
	second, end := list(group, "limit=1&cursor="+next)
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] || end != "" {
		t.Errorf("the group sees %v, then %v and %q", first, second, end)
	}
	if answer := get(group, nil); answer.Status != http.StatusBadRequest ||
		answer.Message() != `"x-service-merchant-uid" is required` {
		t.Errorf("without a merchant the group reads %s", answer.Raw)
	}
	for _, member := range members {
		uid := member.MerchantUID.String()
		answer := get(group, map[string]string{"x-service-merchant-uid": uid})
		if answer.Text("merchant_uid") != uid {
			t.Errorf("the group reads %s", answer.Raw)
		}
	}
	other := map[string]string{"x-service-merchant-uid": s.Home.MerchantUID.String()}
	if answer := get(group, other); answer.Status != http.StatusForbidden {
		t.Errorf("the group reads another's: %s", answer.Raw)
	}
}

func TestCompareOverTheAPI(t *testing.T) {
	t.Parallel()
	s, _, date := ledger(t)
	compare := func(body any, departs bool) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/statements/" + date + "/compare", JSON: body,
			Departs: departs,
		})
	}
	var id int64
	if err := s.DB.GetContext(t.Context(), &id,
		`SELECT merchant_disbursement_id FROM disbursements`); err != nil {
		t.Fatal(err)
	}
	answer := compare(fmt.Sprintf(`{"disbursements":[{"merchantDisbursementId":%d,"net":"1"},
		{"merchantDisbursementId":%d,"net":"0.50"}]}`, id, id+1), false)
	want := fmt.Sprintf(`"missing":[],"extra":[{"merchantDisbursementId":%d,"net":"0.50"}],`+
		`"different":[{"merchantDisbursementId":%d,"net":"1.00","statement_net":"9625.00"}]}`, id+1, id)
	if !strings.Contains(string(answer.Raw), want) {
		t.Errorf("got %s, want %s", answer.Raw, want)
	}
	// A key is bound to one day, and its replay has that day's answer.
	keyed := func(day string) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/statements/" + day + "/compare",
			JSON: `{"disbursements":[]}`, Header: map[string]string{"Idempotency-Key": "k"},
		})
	}
	first, again, other := keyed(date), keyed(date), keyed("2020-01-06")
	if !bytes.Equal(again.Raw, first.Raw) || other.Code() != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("under one key: %s, %s, %s", first.Raw, again.Raw, other.Raw)
	}
	if answer := compare(`{"disbursements":[]}`, false); !strings.Contains(string(answer.Raw),
		fmt.Sprintf(`"missing":[{"merchantDisbursementId":%d,"net":"9625.00"}]`, id)) {
		t.Errorf("empty books: %s", answer.Raw)
	}
	const entry, line = "disbursements[1].", `{"merchantDisbursementId":1,"net":"1"}`
	many := strings.TrimSuffix(strings.Repeat(line+",", 10_001), ",")
	for body, fields := range map[string]string{
		`{}`:                               "disbursements",
		`{"disbursements":{}}`:             "disbursements",
		`{"disbursements":[` + many + `]}`: "disbursements",
		`{"disbursements":[7,null]}`:       "disbursements[0] disbursements[1]",
		`{"disbursements":[` + line + `,{"net":1}]}`: entry + "merchantDisbursementId " +
			entry + "net",
		`{"disbursements":[` + line + `,{"merchantDisbursementId":1,"net":"-1"}]}`: entry +
			"net " + entry + "merchantDisbursementId",
		`{"disbursements":[` + line + `,{"merchantDisbursementId":1.5,"net":"1"}]}`: entry +
			"merchantDisbursementId",
	} {
		if answer := compare(body, true); answer.Status != http.StatusBadRequest ||
			strings.Join(answer.Fields(), " ") != fields {
			t.Errorf("%.80s: got %.300s, want %s", body, answer.Raw, fields)
		}
	}
	if answer := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/statements/2020-01-06/compare",
		JSON: `{"disbursements":[]}`,
	}); answer.Status != http.StatusNotFound {
		t.Errorf("a day without a statement: %s", answer.Raw)
	}
}

// TestVerifyAsDocumented runs the documented command on the API's answer, and on the same
// with one byte flipped.
func TestVerifyAsDocumented(t *testing.T) {
	t.Parallel()
	s, clock, date := ledger(t)
	freeze(s, clock)
	guide, err := os.ReadFile("docs/guides/statements.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```bash\n([^`]*openssl pkeyutl[^`]*)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide has no command with openssl pkeyutl")
	}
	origin := strings.TrimSuffix(s.URL, apptest.BasePath)
	for _, format := range []string{"json", "csv"} {
		content, header := s.Download(apptest.Call{
			Method: http.MethodGet, Path: "/v2/statements/" + date + "?format=" + format,
		})
		folder := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var head strings.Builder
		head.WriteString("HTTP/1.1 200 OK\r\n")
		if err := header.Write(&head); err != nil {
			t.Fatal(err)
		}
		write("headers.txt", head.String())
		write("key.pem", publishedKey(t, origin, header.Get("x-drawbridge-statement-key")))
		run := func(statement []byte) (string, error) {
			write("statement.json", string(statement))
			command := exec.CommandContext(t.Context(), "sh", "-ec", string(block[1]))
			command.Dir = folder
			output, err := command.CombinedOutput()
			return string(output), err
		}
		if output, err := run(content); err != nil ||
			!strings.Contains(output, "Signature Verified Successfully") {
			t.Errorf("%s: %v:\n%s", format, err, output)
		}
		for _, at := range []int{0, len(content) / 2, len(content) - 1} {
			flipped := append([]byte{}, content...)
			flipped[at] ^= 1
			if output, err := run(flipped); err == nil || strings.Contains(output, "Successfully") {
				t.Errorf("%s: byte %d was flipped and verified:\n%s", format, at, output)
			}
		}
		if raw, err := base64.StdEncoding.DecodeString(
			header.Get("x-drawbridge-statement-signature")); err != nil || len(raw) != 64 {
			t.Errorf("%s: the signature is %d bytes: %v", format, len(raw), err)
		}
	}
}

// publishedKey returns the public key with that id from the documentation's list.
func publishedKey(t *testing.T, origin, id string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		origin+"/docs/keys.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var published struct {
		Keys []struct {
			ID        string     `json:"kid"`
			Algorithm string     `json:"algorithm"`
			PublicKey string     `json:"public_key"`
			From      time.Time  `json:"from"`
			Until     *time.Time `json:"until"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(response.Body).Decode(&published); err != nil {
		t.Fatal(err)
	}
	for _, key := range published.Keys {
		if key.ID == id && key.Algorithm == "Ed25519" && !key.From.IsZero() && key.Until == nil {
			return key.PublicKey
		}
	}
	t.Fatalf("the key %q is not published: %+v", id, published)
	return ""
}
