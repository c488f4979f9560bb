package web_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/app/apptest"
	"drawbridge/internal/partner"
)

// last returns the log entry of the latest request.
func last(s *apptest.Server, requestID string) apilog.Entry {
	s.T.Helper()
	for {
		if entry := s.Recorded(); entry.RequestID == requestID {
			return entry
		}
	}
}

// record sends a request with its own request id and returns its log entry.
func record(s *apptest.Server, call apptest.Call) (apptest.Answer, apilog.Entry) {
	s.T.Helper()
	id := "r-" + uuid.NewString()
	header := map[string]string{"X-Request-Id": id, "User-Agent": "partner/1"}
	maps.Copy(header, call.Header)
	call.Header = header
	answer := s.Do(call)
	return answer, last(s, id)
}

func TestEveryRequestIsRecorded(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	offered, loan := s.Offered(), s.Loan("P5050")
	key := map[string]string{"Idempotency-Key": "key-1"}
	merchant := s.Home.MerchantUID
	type seen struct {
		Route, Code, Client string
		Fields              []string
		Status              int
		Application         uuid.UUID
		Replayed, Known     bool
	}
	const base = apptest.BasePath
	accept := map[string]any{
		"thrive_application_uid": offered, "selected_product_uid": uuid.New(),
	}
	client := s.Home.ClientID
	for _, test := range []struct {
		name string
		call apptest.Call
		want seen
	}{
		{
			"a read",
			apptest.Call{Method: "GET", Path: "/v2/loan/" + loan.String()},
			seen{base + "/v2/loan/:uid", "", client, nil, 200, loan, false, true},
		},
		{
			"a draw",
			apptest.Call{
				Method: "POST", Path: "/v2/loan/" + loan.String() + "/request-draw", Header: key,
			},
			seen{base + "/v2/loan/:uid/request-draw", "", client, nil, 200, loan, false, true},
		},
		{
			"a draw again",
			apptest.Call{
				Method: "POST", Path: "/v2/loan/" + loan.String() + "/request-draw", Header: key,
			},
			seen{base + "/v2/loan/:uid/request-draw", "", client, nil, 200, loan, true, true},
		},
		{
			"a pending draw",
			apptest.Call{
				Method: "POST", Path: "/v2/loan/" + loan.String() + "/request-draw",
			},
			seen{base + "/v2/loan/:uid/request-draw", "DRAW_PENDING", client, nil, 500, loan, false, true},
		},
		{
			"an unknown product",
			apptest.Call{Method: "PUT", Path: "/v2/application/accept-offer", JSON: accept},
			seen{
				base + "/v2/application/accept-offer", "PRODUCT_NOT_FOUND", client, nil, 400, offered,
				false, true,
			},
		},
		{
			"wrong fields",
			apptest.Call{
				Method: "POST", Path: "/v2/application", JSON: map[string]any{"requested_amount": "x"},
			},
			seen{
				base + "/v2/application", "VALIDATION_ERROR", client,
				[]string{"requested_amount", "borrower", "project"},
				400, uuid.Nil, false, true,
			},
		},
		{
			"a stranger",
			apptest.Call{
				Method: "GET", Path: "/v2/loan/" + loan.String(), Anonymous: true,
				Header: map[string]string{"x-service-client-id": "dbc_guessed"},
			},
			seen{base + "/v2/loan/:uid", "UNAUTHORIZED", "dbc_guessed", nil, 401, uuid.Nil, false, false},
		},
	} {
		answer, entry := record(s, test.call)
		got := seen{
			entry.Route, string(entry.ErrorCode), entry.ClientID, entry.ErrorFields, entry.Status,
			entry.ApplicationUID, entry.Replayed, entry.Authenticated,
		}
		if diff := cmp.Diff(test.want, got); diff != "" || answer.Status != entry.Status {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if entry.Path != base+test.call.Path || entry.Method != test.call.Method ||
			entry.BytesOut != int64(len(answer.Raw)) || entry.Duration <= 0 ||
			entry.UserAgent != "partner/1" || entry.Address != "127.0.0.1" || entry.At.IsZero() {
			t.Errorf("%s: %+v", test.name, entry)
		}
		if test.want.Known && (entry.MerchantUID != merchant ||
			entry.PartnerUID != s.Home.PartnerUID) {
			t.Errorf("%s belongs to %s of %s", test.name, entry.MerchantUID, entry.PartnerUID)
		}
	}
}

// A request that is refused for its merchant, or for the wrong kind of client, still counts
// as its client's: in the request log, and against the rate limit.
func TestRefusedCallsCountForTheirClient(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	at := s.DB.Now()
	s.DB.Now = func() time.Time { return at }
	group, _ := s.NewGroup("Group", 2)
	read, system := "/v2/application/"+uuid.NewString(), "/lender/v1/applications/"+uuid.NewString()
	type seen struct {
		Status  int
		Client  string
		Partner uuid.UUID
		Known   bool
	}
	for name, test := range map[string]struct {
		as             apptest.Account
		path, merchant string
		status         int
	}{
		"another merchant":           {s.NewAccount("One"), read, uuid.NewString(), 403},
		"no merchant's name":         {s.NewAccount("Two"), read, "mine", 400},
		"a group without a merchant": {group, read, "", 400},
		"a partner at the lender's":  {s.NewAccount("Three"), system, "", 404},
		"the lender at a partner's":  {s.NewSystem("treasury", partner.Scopes()...), read, "", 404},
	} {
		s.SetRate(test.as, 1, 2)
		call := apptest.Call{
			Method: "GET", Path: test.path, As: &test.as,
			Header: map[string]string{"x-service-merchant-uid": test.merchant},
		}
		for _, status := range []int{test.status, test.status, 429} {
			answer, entry := record(s, call)
			got := seen{answer.Status, entry.ClientID, entry.PartnerUID, entry.Authenticated}
			want := seen{status, test.as.ClientID, test.as.PartnerUID, true}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if limit := answer.Header.Get("RateLimit-Limit"); limit != "2" {
				t.Errorf("%s: RateLimit-Limit is %q", name, limit)
			}
		}
	}
}

// Created objects are named by the answer; the object of a sandbox request by its task.
func TestRecordedCreations(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	made, entry := record(s, apptest.Call{
		Method: "POST", Path: "/v2/application", JSON: apptest.Borrow(),
	})
	uid := made.Text("thrive_application_uid")
	if entry.Status != 201 || entry.ApplicationUID.String() != uid || entry.BytesIn == 0 {
		t.Errorf("creating %s is recorded as %+v", uid, entry)
	}
	task, entry := record(s, apptest.Call{
		Method: "POST", Path: "/v2/sandbox/application/" + uid + "/task",
		JSON: map[string]any{"title": "Sign"},
	})
	if entry.ApplicationUID.String() != uid {
		t.Errorf("a new task is recorded as %+v", entry)
	}
	_, entry = record(s, apptest.Call{
		Method: "POST", Path: "/v2/sandbox/task/" + task.Text("task_uid") + "/status",
		JSON: map[string]any{"status": "Completed"},
	})
	if entry.ApplicationUID.String() != uid {
		t.Errorf("a completed task is recorded as %+v", entry)
	}
}

// Queries, secrets and bodies are not logged, nor are requests outside the API.
func TestNothingPrivateIsRecorded(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P5050")
	_, entry := record(s, apptest.Call{
		Method: "GET", Path: "/v2/loan/" + loan.String() + "/draw-preview?updatedLoanAmount=1",
	})
	if strings.ContainsAny(entry.Path, "?=") {
		t.Errorf("path %q", entry.Path)
	}
	response, err := http.Get(strings.TrimSuffix(s.URL, apptest.BasePath) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.Do(apptest.Call{Method: "GET", Path: "/v2/nothing/here"})
	entry = s.Recorded() // the one after the preview's
	if entry.Status != 404 || entry.ErrorCode != "NOT_FOUND" ||
		strings.Contains(entry.Path, "healthz") {
		t.Errorf("a path that does not exist is recorded as %+v", entry)
	}
}
