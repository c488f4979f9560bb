package web_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// documents is the form of a draw that completes.
var documents = map[string]string{"metadata": `{"projectName":"New roof"}`}

func merge(forms ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, form := range forms {
		maps.Copy(all, form)
	}
	return all
}

// TestDrawAfterTheClockWasSetAhead draws in a month that has no partitions yet.
func TestDrawAfterTheClockWasSetAhead(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P404020")
	now := s.DB.Now
	s.DB.Now = func() time.Time { return now().AddDate(0, 7, 0) }
	if answer := s.Draw(uid, nil); answer.Status != http.StatusOK {
		t.Errorf("the draw answered %s", answer.Raw)
	}
	if events := s.Events(uid); !strings.HasSuffix(events[len(events)-1], " FUNDING_REQUESTED") {
		t.Errorf("the events are %v", events)
	}
}

// TestEmptyMetadataIsNoDocumentation sends only metadata={}: a regular draw ignores it, and
// a completing one still lacks its certificate.
func TestEmptyMetadataIsNoDocumentation(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	empty := map[string]string{"metadata": " { } "}
	if answer := s.Draw(s.Loan("P404020"), empty); answer.Status != http.StatusOK {
		t.Errorf("a regular draw answered %s", answer.Raw)
	}
	single := s.Loan("P100")
	if answer := s.Draw(single, empty); answer.Code() != "COMPLETION_DOCUMENTS_REQUIRED" {
		t.Errorf("a final draw answered %s", answer.Raw)
	}
	answer := s.Do(apptest.Call{
		Method: http.MethodPost, Form: empty,
		Path: "/v2/loan/" + single.String() + "/completion-cert-upload",
	})
	if answer.Code() != "COMPLETION_DOCUMENTS_REQUIRED" {
		t.Errorf("a certificate answered %s", answer.Raw)
	}
	if answer := s.Draw(single, documents); answer.Status != http.StatusOK {
		t.Errorf("with a certificate it answered %s", answer.Raw)
	}
}

// If documents are missing, the refusal names a file that was sent under an unknown name.
func TestMisnamedFilesAreToldOf(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := "/v2/loan/" + s.Loan("P100").String()
	for _, name := range []string{"files[]", "file", "Files"} {
		for _, path := range []string{"/request-draw", "/completion-cert-upload"} {
			answer := s.Do(apptest.Call{
				Method: http.MethodPost, Path: loan + path,
				JSON: fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=%q; filename=%q\r\n\r\n"+
					"%s\r\n--b--\r\n", name, "a.pdf", apptest.PDF()),
				Header: map[string]string{"Content-Type": "multipart/form-data; boundary=b"},
			})
			fault := answer.Result.Error
			if answer.Code() != "COMPLETION_DOCUMENTS_REQUIRED" ||
				!strings.HasPrefix(answer.Message(), "File or metadata is required") ||
				len(fault.Details) != 1 || fault.Details[0].Field != "files" ||
				!strings.Contains(fault.Details[0].Message, strconv.Quote(name)) {
				t.Errorf("a part %q of %s answered %s", name, path, answer.Raw)
			}
		}
	}
}

func TestRequestDrawTakesAnEmptyJSONObject(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	path := "/v2/loan/" + s.Loan("P404020").String() + "/request-draw"
	key := map[string]string{"Idempotency-Key": "draw"}
	first := s.Do(apptest.Call{Method: http.MethodPost, Path: path, JSON: "{}", Header: key})
	again := s.Do(apptest.Call{Method: http.MethodPost, Path: path, Header: key})
	if first.Status != http.StatusOK || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("{} was answered %s, no body under its key %s", first.Raw, again.Raw)
	}
	said := s.Do(apptest.Call{
		Method: http.MethodPost, Path: path, JSON: `{"projectCompletedEarly":true}`,
	})
	if said.Code() != "UNSUPPORTED_MEDIA_TYPE" {
		t.Errorf("JSON that says something was answered %s", said.Raw)
	}
}

func TestRequestDraw(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for _, test := range []struct {
		name    string
		product string
		settled int
		form    map[string]string
		files   map[string][]byte
		status  int
		code    string
		gross   string
		net     string
		says    string
	}{
		{name: "regular", product: "P404020", status: 200, gross: "10000.00", net: "9625.00"},
		{
			name: "reduced", product: "P404020", status: 200, gross: "1234.56", net: "1188.26",
			form: map[string]string{"updatedDisbursementAmount": "1234.56"},
		},
		{
			name: "reduced to the calculated amount", product: "P404020",
			form:   map[string]string{"updatedDisbursementAmount": "10000.00"},
			status: 400, code: "AMOUNT_EXCEEDS_BALANCE",
		},
		{
			name: "more than an amount can be", product: "P404020",
			form:   map[string]string{"updatedDisbursementAmount": "1000000000000000.00"},
			status: 400, code: "AMOUNT_EXCEEDS_BALANCE", says: "must be less than the calculated",
		},
		{
			name: "reduced to nothing", product: "P404020",
			form:   map[string]string{"updatedDisbursementAmount": "0"},
			status: 400, code: "VALIDATION_ERROR",
		},
		{
			name: "three decimals", product: "P404020",
			form:   map[string]string{"updatedDisbursementAmount": "10.001"},
			status: 400, code: "VALIDATION_ERROR",
		},
		{
			name: "loan amount on a regular draw", product: "P404020",
			form:   map[string]string{"updatedLoanAmount": "20000"},
			status: 400, code: "VALIDATION_ERROR",
		},
		{
			name: "documents on a regular draw", product: "P404020", form: documents,
			status: 400, code: "COMPLETION_DOCUMENTS_NOT_ALLOWED",
			says: "this is not the final draw for the loan",
		},
		{
			name: "final with metadata", product: "P5050", settled: 1, form: documents,
			status: 200, gross: "12500.00", net: "12187.50",
		},
		{
			name: "final with a file", product: "P5050", settled: 1,
			files:  map[string][]byte{"certificate.pdf": apptest.PDF()},
			status: 200, gross: "12500.00", net: "12187.50",
		},
		{
			name: "final without documents", product: "P5050", settled: 1,
			status: 400, code: "COMPLETION_DOCUMENTS_REQUIRED",
			says: "File or metadata is required for completion certificate upload",
		},
		{
			name: "final of a smaller loan", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"updatedLoanAmount": "20000.00"}),
			status: 200, gross: "7500.00", net: "7312.50",
		},
		{
			name: "final of a larger loan", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"updatedLoanAmount": "25000.01"}),
			status: 400, code: "AMOUNT_EXCEEDS_BALANCE",
		},
		{
			name: "final of more than an amount can be", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"updatedLoanAmount": "1000000000000"}),
			status: 400, code: "AMOUNT_EXCEEDS_BALANCE", says: "must not exceed the original",
		},
		{
			name: "final below what was drawn", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"updatedLoanAmount": "12500.00"}),
			status: 400, code: "VALIDATION_ERROR",
		},
		{
			name: "final ignores the reduced amount", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"updatedDisbursementAmount": "1.00"}),
			status: 200, gross: "12500.00", net: "12187.50",
		},
		{
			name: "single draw is final", product: "P100",
			status: 400, code: "COMPLETION_DOCUMENTS_REQUIRED",
		},
		{
			name: "early", product: "P404020", settled: 1,
			form:   merge(documents, map[string]string{"projectCompletedEarly": "true"}),
			status: 200, gross: "15000.00", net: "14437.50",
		},
		{
			name: "early on the first draw", product: "P404020",
			form:   merge(documents, map[string]string{"projectCompletedEarly": "true"}),
			status: 400, code: "EARLY_COMPLETION_NOT_ALLOWED",
		},
		{
			name: "early without documents", product: "P404020", settled: 1,
			form:   map[string]string{"projectCompletedEarly": "true"},
			status: 400, code: "COMPLETION_DOCUMENTS_REQUIRED",
		},
		{
			name: "early with a reduced amount", product: "P404020", settled: 1,
			form: merge(documents, map[string]string{
				"projectCompletedEarly": "true", "updatedDisbursementAmount": "1.00",
			}),
			status: 400, code: "VALIDATION_ERROR",
		},
		{
			name: "early that is final anyway", product: "P5050", settled: 1,
			form:   merge(documents, map[string]string{"projectCompletedEarly": "true"}),
			status: 200, gross: "12500.00", net: "12187.50",
		},
		{
			name: "a file that is not what it says", product: "P5050", settled: 1,
			files:  map[string][]byte{"certificate.pdf": []byte("MZ\x90\x00 not a document")},
			status: 400, code: "FILE_TYPE_NOT_ALLOWED",
		},
		{
			name: "metadata that is no object", product: "P5050", settled: 1,
			form:   map[string]string{"metadata": "[1]"},
			status: 400, code: "VALIDATION_ERROR",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			loan := s.Loan(test.product)
			for range test.settled {
				s.DrawSettled(loan)
			}
			before := s.Events(loan)
			answer := s.Do(apptest.Call{
				Method: http.MethodPost, Path: "/v2/loan/" + loan.String() + "/request-draw",
				Form: test.form, Files: test.files,
			})
			if answer.Status != test.status || answer.Code() != test.code ||
				!strings.Contains(answer.Message(), test.says) {
				t.Fatalf("answered %s", answer.Raw)
			}
			after := s.Events(loan)
			if test.status != http.StatusOK {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("a refused draw left events:\n%s", diff)
				}
				return
			}
			want := append(slices.Clone(before), "disbursement.funding.status-changed FUNDING_REQUESTED")
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("events:\n%s", diff)
			}
			for field, amount := range map[string]string{
				"grossDisbursedAmount": test.gross, "netDisbursedAmount": test.net,
				"amountFunded": test.net, "loanApplicationUid": loan.String(),
				"merchantUid": s.Home.MerchantUID.String(),
			} {
				if got := answer.Text(field); got != amount {
					t.Errorf("%s is %q, want %q", field, got, amount)
				}
			}
		})
	}
}

func TestDrawNamesEveryWrongPart(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	path := "/v2/loan/" + s.Loan("P404020").String() + "/request-draw"
	const reduced, revised = "updatedDisbursementAmount", "updatedLoanAmount"
	broken := map[string][]byte{"certificate.pdf": []byte("MZ")}
	for name, test := range map[string]struct {
		form  map[string]string
		files map[string][]byte
		code  string
		want  []string
	}{
		"everything": {
			map[string]string{
				reduced: "x", revised: "x", "projectCompletedEarly": "true", "metadata": "[1]",
			},
			broken, "VALIDATION_ERROR",
			[]string{reduced, revised, reduced, "files", "metadata"},
		},
		"file and metadata": {
			map[string]string{"metadata": "[1]"},
			broken, "FILE_TYPE_NOT_ALLOWED",
			[]string{"files", "metadata"},
		},
		"amount and metadata": {
			map[string]string{revised: "x", "metadata": "[1]"},
			nil, "VALIDATION_ERROR",
			[]string{revised, "metadata"},
		},
		"too large": {
			map[string]string{revised: "x", "metadata": `"` + strings.Repeat("x", 64<<10) + `"`},
			nil, "PAYLOAD_TOO_LARGE",
			[]string{"metadata"},
		},
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodPost, Path: path, Form: test.form, Files: test.files,
		})
		if diff := cmp.Diff(test.want, answer.Fields()); diff != "" || answer.Code() != test.code ||
			answer.Message() != answer.Result.Error.Details[0].Message {
			t.Errorf("%s: answered %s:\n%s", name, answer.Raw, diff)
		}
	}
}

// storedFiles lists the files below the server's bucket.
func storedFiles(t *testing.T, s *apptest.Server) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(s.Folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRefusedUploadLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	final, first := s.Loan("P100"), s.Loan("P404020")
	pdf := map[string][]byte{"certificate.pdf": apptest.PDF()}
	for name, call := range map[string]apptest.Call{
		"not the final draw": {Path: "/v2/loan/" + first.String() + "/request-draw", Files: pdf},
		"unknown loan":       {Path: "/v2/loan/" + uuid.NewString() + "/request-draw", Files: pdf},
		"malformed amount": {
			Path: "/v2/loan/" + final.String() + "/request-draw", Files: pdf,
			Form: map[string]string{"updatedLoanAmount": "x"},
		},
		"one bad file": {
			Path: "/v2/loan/" + final.String() + "/request-draw",
			Files: map[string][]byte{
				"a.pdf": apptest.PDF(), "b.pdf": []byte("<html>"), "c.exe": []byte("MZ"),
			},
		},
	} {
		call.Method = http.MethodPost
		if answer := s.Do(call); answer.Status < 400 {
			t.Errorf("%s: answered %s", name, answer.Raw)
		}
		if files := storedFiles(t, s); len(files) > 0 {
			t.Errorf("%s left %v", name, files)
		}
	}
	granted := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/loan/" + final.String() + "/request-draw", Files: pdf,
	})
	if files := storedFiles(t, s); granted.Status != http.StatusOK || len(files) != 1 {
		t.Errorf("a granted draw answered %s and stored %v", granted.Raw, files)
	}
}

// TestUploadThatWasStoredMeanwhileLeavesNoFile: the database rolls an upload back when only its
// reply is missing, and before it is retried another request has stored one under the same key.
func TestUploadThatWasStoredMeanwhileLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	call := apptest.Call{
		Method: http.MethodPost,
		Path:   "/v2/loan/" + s.Loan("P100").String() + "/completion-cert-upload",
		Files:  map[string][]byte{"certificate.pdf": apptest.PDF()},
		Header: map[string]string{"Idempotency-Key": "upload"},
	}
	first := s.Do(call)
	s.Exec(t, `UPDATE idempotency_keys SET expires_at = created_at + interval '1 microsecond'`)
	s.Exec(t, `
		CREATE SEQUENCE tries;
		CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('tries') = 1 THEN
				PERFORM pg_advisory_xact_lock(1);
				RAISE serialization_failure;
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER fail_once BEFORE INSERT ON idempotency_keys
			FOR EACH ROW EXECUTE FUNCTION fail_once()`)
	answers := make(chan apptest.Answer, 1)
	s.InTx(func(tx *postgres.Tx) error {
		_, err := tx.ExecContext(t.Context(), `SELECT pg_advisory_xact_lock(1)`)
		go func() {
			answer, _ := s.Try(call) // an error leaves it empty
			answers <- answer
		}()
		pgtest.WaitForLock(t, s.DB)
		s.Exec(t, `UPDATE idempotency_keys SET expires_at = created_at + interval '1 day'`)
		return err
	})
	second := <-answers
	if second.Header.Get("Idempotency-Replayed") == "" || !bytes.Equal(second.Raw, first.Raw) {
		t.Errorf("answered %s, want what was stored: %s", second.Raw, first.Raw)
	}
	if files := storedFiles(t, s); len(files) != 1 {
		t.Errorf("stored %v, want the first one's file", files)
	}
}

func TestSimultaneousDrawsGrantOne(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P404020")
	const callers = 50
	answers := make(chan apptest.Answer, callers)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			answer, err := s.Try(apptest.Call{
				Method: http.MethodPost, Path: "/v2/loan/" + loan.String() + "/request-draw",
			})
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		})
	}
	group.Wait()
	close(answers)
	outcomes := map[string]int{}
	for answer := range answers {
		outcomes[fmt.Sprintf("%d %s", answer.Status, answer.Code())]++
		if answer.Code() == "DRAW_PENDING" &&
			!strings.HasPrefix(answer.Message(), "Error in requestPublicDrawV2:") {
			t.Errorf("the pending error says %q", answer.Message())
		}
	}
	want := map[string]int{"200 ": 1, "500 DRAW_PENDING": callers - 1}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes:\n%s", diff)
	}
	draws := 0
	for _, event := range s.Events(loan) {
		if event == "disbursement.funding.status-changed FUNDING_REQUESTED" {
			draws++
		}
	}
	var rows int
	if err := s.DB.Get(&rows, `SELECT count(*) FROM disbursements`); err != nil {
		t.Fatal(err)
	}
	if draws != 1 || rows != 1 {
		t.Errorf("%d events and %d disbursements, want one of each", draws, rows)
	}
}

func TestDrawOnApplicationThatCannot(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	offered := s.Offered()
	left := s.Loan("P404020")
	s.Move(left, "Pend Clearance")
	unselected := s.Offered()
	s.Move(unselected, "Approved")
	stranger := s.NewAccount("Stranger")
	for _, test := range []struct {
		name   string
		loan   uuid.UUID
		form   map[string]string
		as     *apptest.Account
		status int
		code   string
		says   string
	}{
		{"not approved yet", offered, nil, nil, 400, "APPLICATION_NOT_APPROVED", "Approved status"},
		{"not approved any more", left, nil, nil, 400, "APPLICATION_NOT_APPROVED", "Approved status"},
		{
			"with a certificate", left, documents, nil, 400, "APPLICATION_NOT_APPROVED",
			"before requesting a draw with an accompanying completion certificate",
		},
		{"no loan yet", unselected, nil, nil, 409, "INVALID_STATE", "no loan"},
		{"unknown", uuid.New(), nil, nil, 404, "NOT_FOUND", ""},
		{"another merchant's", left, nil, &stranger, 404, "NOT_FOUND", ""},
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/loan/" + test.loan.String() + "/request-draw",
			Form: test.form, As: test.as,
		})
		if answer.Status != test.status || answer.Code() != test.code ||
			!strings.Contains(answer.Message(), test.says) {
			t.Errorf("%s: answered %s", test.name, answer.Raw)
		}
	}
}

// TestCallsAreCounted delays a draw by a lock on its loan: meanwhile the delivery engine
// counts the request in progress, and yields.
func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P404020")
	tx := pgtest.Begin(t, s.DB, `SELECT 1 FROM loans FOR UPDATE`)
	inFlight := func(want int) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%d calls are in flight", want), func() bool {
			return s.Webhooks.Gate.InFlight() == want
		})
	}
	inFlight(0)
	done := make(chan error, 1)
	go func() {
		_, err := s.Try(apptest.Call{
			Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/request-draw",
			Form: map[string]string{},
		})
		done <- err
	}()
	inFlight(1)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	inFlight(0)
}
