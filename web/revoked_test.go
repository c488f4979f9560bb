package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// slowCall is a POST that was admitted and waits for its body.
type slowCall struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

// beginSlow sends a request without its body, and returns once the server asks for the body.
func beginSlow(
	t *testing.T, s *apptest.Server, as apptest.Account, path, head string,
) slowCall {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), apptest.BasePath)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nhost: %s\r\nexpect: 100-continue\r\n"+
		"x-service-client-id: %s\r\nx-service-client-secret: %s\r\n%s\r\n",
		apptest.BasePath, path, address, as.ClientID, as.Secret, head)
	if err != nil {
		t.Fatal(err)
	}
	call := slowCall{t, conn, bufio.NewReader(conn)}
	line, err := textproto.NewReader(call.reader).ReadLine()
	if err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("the call was not let in: %q, %v", line, err)
	}
	if _, err := call.reader.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return call
}

// send sends the body and returns the answer.
func (c slowCall) send(body string) (answer apptest.Answer) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, body); err != nil {
		c.t.Fatal(err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	answer.Status, answer.Header = response.StatusCode, response.Header
	if answer.Raw, err = io.ReadAll(response.Body); err == nil {
		err = json.Unmarshal(answer.Raw, &answer)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// revoke revokes a client, and returns when every process has noticed.
func revoke(s *apptest.Server, client apptest.Account) {
	s.T.Helper()
	s.InTx(func(tx *postgres.Tx) error {
		return s.Partners.RevokeClient(s.T.Context(), tx, client.ClientID)
	})
}

// wantUnauthorized expects exactly the answer to wrong credentials.
func wantUnauthorized(t *testing.T, s *apptest.Server, answer apptest.Answer) {
	t.Helper()
	want := s.Do(apptest.Call{
		Method: http.MethodGet, Path: "/v2/loan/" + uuid.NewString(), Anonymous: true,
	})
	if answer.Status != http.StatusUnauthorized || answer.Message() != want.Message() {
		t.Errorf("answered %s, want %s", answer.Raw, want.Raw)
	}
}

// TestBodyAfterTheEndOfItsCredentials ends the credentials of requests while their bodies
// are on the way: the requests must have no effect.
func TestBodyAfterTheEndOfItsCredentials(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P404020")
	other := s.Loan("P404020")
	disbursement := apptest.DisbursementID(s.Draw(other, nil))
	const part = "--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--B--\r\n"
	own := func() apptest.Account {
		account := s.Home
		s.InTx(func(tx *postgres.Tx) error {
			issued, err := s.Partners.CreateClient(t.Context(), tx, partner.NewClient{
				PartnerUID: s.Home.PartnerUID, MerchantUIDs: []uuid.UUID{s.Home.MerchantUID},
			})
			account.ClientID, account.Secret = issued.ClientID, issued.Secret
			return err
		})
		return account
	}
	rotate := func(s *apptest.Server, client apptest.Account) {
		s.T.Helper()
		s.InTx(func(tx *postgres.Tx) error {
			_, err := s.Partners.RotateClient(s.T.Context(), tx, client.ClientID, 0)
			return err
		})
	}
	draw := "/v2/loan/" + loan.String() + "/request-draw"
	for _, test := range []struct {
		name, path, media, body string
		as                      apptest.Account
		end                     func(s *apptest.Server, client apptest.Account)
	}{
		{"a draw, revoked", draw, "multipart/form-data; boundary=B", part, own(), revoke},
		{"a draw, rotated", draw, "multipart/form-data; boundary=B", part, own(), rotate},
		{
			"an application", "/v2/application", "application/json",
			`{"requested_amount":"25000.00","borrower":{"first_name":"B","last_name":"B",` +
				`"email":"bea@borrower.example"},"project":{"name":"Late"}}`, own(), revoke,
		},
		{
			"a lender's funding", fmt.Sprintf("/lender/v1/disbursements/%d/status", disbursement),
			"application/json", `{"status":"FUNDING_PROCESSING"}`,
			s.NewSystem("Core banking", partner.ScopeFunding), revoke,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			call := beginSlow(t, s, test.as, test.path, fmt.Sprintf(
				"content-type: %s\r\ncontent-length: %d\r\n", test.media, len(test.body)))
			test.end(s, test.as)
			wantUnauthorized(t, s, call.send(test.body))
		})
	}
	if drawn := s.Get("/v2/loan/" + loan.String()).Text("drawn_amount"); drawn != "0.00" {
		t.Errorf("%s was drawn", drawn)
	}
	events := s.Events(other)
	if last := events[len(events)-1]; !strings.HasSuffix(last, " FUNDING_REQUESTED") {
		t.Errorf("the money was moved: %s", last)
	}
	found := s.Get("/v2/application?limit=500")
	if strings.Contains(string(found.Raw), `"Late"`) {
		t.Errorf("an application was made: %s", found.Raw)
	}
}

// TestDrawThatWaitsBeyondTheEndOfItsCredentials revokes a client while its draw waits for a
// lock on the application.
func TestDrawThatWaitsBeyondTheEndOfItsCredentials(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t, "DRAWBRIDGE_DATABASE_TIMEOUT", "1m").Furnish()
	uid := s.Loan("P100")
	reader, _ := s.NewSibling(s.Home)
	tx := pgtest.Begin(t, s.DB, `SELECT FROM applications WHERE application_uid = $1 FOR UPDATE`, uid)
	answers := make(chan apptest.Answer, 1)
	go func() {
		answer, err := s.Try(apptest.Call{
			Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/request-draw",
			Form:  map[string]string{"metadata": `{"inspector":"Ada"}`},
			Files: map[string][]byte{"a.pdf": apptest.PDF()},
		})
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	pgtest.WaitForLock(t, s.DB)
	revoke(s, s.Home)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.Home.ClientID, s.Home.Secret = reader.ClientID, reader.Secret
	wantUnauthorized(t, s, waittest.Receive(t, "the answer", answers))
	if events := s.Events(uid); strings.Contains(strings.Join(events, ""), "FUNDING") {
		t.Errorf("money was drawn: %v", events)
	}
	if files := storedFiles(t, s); len(files) > 0 {
		t.Errorf("files were left: %v", files)
	}
}

// TestWaitForEventsBeyondTheEndOfCredentials revokes a client while it waits for events: it
// must not receive those that come after.
func TestWaitForEventsBeyondTheEndOfCredentials(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	late := s.NewAccount("Late")
	uid := s.CreateAs(late)
	publish(s)
	after := "after=" + events(s, late, "after=latest").NextCursor
	answers := ask(s, late, after+"&wait=30")
	waiting(s, 1)
	revoke(s, late)
	s.InTx(func(tx *postgres.Tx) error {
		_, err := s.Applications.AddTask(t.Context(), tx, apptest.Operator(), uid, "Sign")
		return err
	})
	publish(s)
	wantUnauthorized(t, s, waittest.Receive(t, "the answer", answers))
}
