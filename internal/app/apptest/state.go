package apptest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/web/docs/contracttest"
)

// Borrow is a request body that creates an application for 25000.00.
func Borrow() map[string]any {
	return map[string]any{
		"requested_amount": "25000.00",
		"borrower": map[string]any{
			"first_name": "Bea", "last_name": "Borrower", "email": "bea@borrower.example",
			"annual_income": "96000.00",
		},
		"project": map[string]any{"name": "New roof"},
	}
}

// Create creates an application as Home.
func (s *Server) Create() uuid.UUID {
	s.T.Helper()
	return s.CreateAs(s.Home)
}

// CreateAs creates an application as another account.
func (s *Server) CreateAs(account Account) uuid.UUID {
	s.T.Helper()
	answer := s.ok(Call{
		Method: http.MethodPost, Path: "/v2/application", JSON: Borrow(), As: &account,
	})
	return uuid.MustParse(answer.Text("thrive_application_uid"))
}

// Offered creates an application and runs its decision.
func (s *Server) Offered() uuid.UUID {
	s.T.Helper()
	uid := s.Create()
	s.ok(Call{
		Method: http.MethodPost, Path: "/v2/application/create-run-decision",
		JSON: map[string]any{"thrive_application_uid": uid},
	})
	return uid
}

// Accept accepts the offer of a product.
func (s *Server) Accept(uid uuid.UUID, product string, linked ...uuid.UUID) Answer {
	s.T.Helper()
	body := map[string]any{
		"thrive_application_uid": uid, "selected_product_uid": s.Products[product],
	}
	if len(linked) > 0 {
		body["linked_application_uids"] = linked
	}
	return s.Do(Call{Method: http.MethodPut, Path: "/v2/application/accept-offer", JSON: body})
}

// Move takes an application to a status.
func (s *Server) Move(uid uuid.UUID, status string) Answer {
	s.T.Helper()
	return s.Do(Call{
		Method: http.MethodPost, Path: "/v2/sandbox/application/" + uid.String() + "/status",
		JSON: map[string]any{"status": status},
	})
}

// Loan opens a loan of 25000.00 with a product's schedule.
func (s *Server) Loan(product string) uuid.UUID {
	s.T.Helper()
	uid := s.Offered()
	for _, answer := range []Answer{s.Accept(uid, product), s.Move(uid, "Approved")} {
		if answer.Status != http.StatusOK {
			s.T.Fatalf("opening a loan: %s", answer.Raw)
		}
	}
	return uid
}

// Fund moves a disbursement.
func (s *Server) Fund(id int64, status string) Answer {
	s.T.Helper()
	return s.Do(Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/v2/sandbox/disbursement/%d/status", id),
		JSON: map[string]any{"status": status},
	})
}

// DrawSettled draws the next regular stage and settles it.
func (s *Server) DrawSettled(uid uuid.UUID) {
	s.T.Helper()
	answer := s.Draw(uid, nil)
	if answer.Status != http.StatusOK {
		s.T.Fatalf("drawing: %s", answer.Raw)
	}
	id := DisbursementID(answer)
	for _, status := range []string{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
		if moved := s.Fund(id, status); moved.Status != http.StatusOK {
			s.T.Fatalf("settling: %s", moved.Raw)
		}
	}
}

// DisbursementID reads the id of a granted draw.
func DisbursementID(answer Answer) int64 {
	id, _ := answer.Data()["merchantDisbursementId"].(float64)
	return int64(id)
}

// Get reads a resource.
func (s *Server) Get(path string) Answer {
	s.T.Helper()
	return s.Do(Call{Method: http.MethodGet, Path: path})
}

// Events lists kind and status of an application's events, in order.
func (s *Server) Events(uid uuid.UUID) []string {
	s.T.Helper()
	var events []string
	s.must(s.DB.SelectContext(s.T.Context(), &events, `
		SELECT kind || ' ' || status
		  FROM events
		 WHERE application_uid = $1
		 ORDER BY occurred_at`, uid))
	return events
}

// Mails lists kind and state of an application's e-mails, in order.
func (s *Server) Mails(uid uuid.UUID) []string {
	s.T.Helper()
	var mails []string
	s.must(s.DB.SelectContext(s.T.Context(), &mails, `
		SELECT kind || ' ' || state
		  FROM emails
		 WHERE application_uid = $1
		 ORDER BY created_at, email_uid`, uid))
	return mails
}

func (s *Server) ok(call Call) Answer {
	s.T.Helper()
	answer := s.Do(call)
	if answer.Status >= http.StatusMultipleChoices {
		s.T.Fatalf("%s %s answered %s", call.Method, call.Path, answer.Raw)
	}
	return answer
}

// Send sends a prepared request with an account's credentials.
func (s *Server) Send(account Account, request *http.Request) Answer {
	s.T.Helper()
	request.Header.Set("x-service-client-id", account.ClientID)
	request.Header.Set("x-service-client-secret", account.Secret)
	answer, err := s.send(s.client, request)
	s.must(err)
	return answer
}

// SetRate changes the rate limit of an account.
func (s *Server) SetRate(account Account, perSecond, burst int) {
	s.T.Helper()
	s.InTx(func(tx *postgres.Tx) error {
		return s.Partners.SetRate(s.T.Context(), tx, account.ClientID, perSecond, burst)
	})
}

// Supply makes the resources that an example of the contract needs and returns their identifiers by
// the identifiers used in the document.
func (s *Server) Supply(needs string) map[string]string {
	s.T.Helper()
	identifiers := map[string]string{
		contracttest.ProductUID:    s.Products["P404020"].String(),
		contracttest.MerchantUID:   s.Home.MerchantUID.String(),
		contracttest.SiblingUID:    s.Offered().String(),
		contracttest.StatementDate: s.Statements.Calendar.DayOf(s.DB.Now()).String(),
	}
	uid := uuid.Nil
	// A sibling always exists; the part before it names the subject.
	needs = strings.TrimSuffix(needs, " with application.sibling")
	switch needs {
	case "", "statement": // today's statement exists for every example
	case "application.new":
		uid = s.Create()
	case "application.offered", "application.sibling":
		uid = s.Offered()
	case "application.approved", "loan.first":
		uid = s.Loan("P404020")
	case "loan.middle":
		uid = s.Loan("P404020")
		s.DrawSettled(uid)
	case "loan.final":
		uid = s.Loan("P404020")
		s.DrawSettled(uid)
		s.DrawSettled(uid)
	case "task.pending":
		uid = s.Create()
		task := s.ok(Call{
			Method: http.MethodPost, Path: "/v2/sandbox/application/" + uid.String() + "/task",
			JSON: map[string]any{"title": "Proof of income"},
		})
		identifiers[contracttest.TaskUID] = task.Text("task_uid")
	case "disbursement.requested", "disbursement.processing":
		uid = s.Loan("P404020")
		id := DisbursementID(s.Draw(uid, nil))
		if needs == "disbursement.processing" {
			s.Fund(id, "FUNDING_PROCESSING")
		}
		identifiers[contracttest.DisbursementID] = strconv.FormatInt(id, 10)
	case "subscription", "fault":
		to := s.SubscribeHome().UID
		identifiers[contracttest.SubscriptionUID] = to.String()
		if needs == "fault" {
			ordered := s.ok(Call{Method: http.MethodPost, Path: "/v2/sandbox/faults", JSON: map[string]any{
				"subscription_uid": to, "fault": "duplicate",
			}})
			identifiers[contracttest.FaultUID] = ordered.Text("fault_uid")
		}
	case "delivery.failed", "recovery":
		made := s.Undelivered(s.Create())
		identifiers[contracttest.DeliveryUID] = made.UID.String()
		identifiers[contracttest.SubscriptionUID] = made.SubscriptionUID.String()
		since := made.CreatedAt.Add(-time.Minute).UTC().Format(time.RFC3339)
		identifiers[contracttest.RecoverySince] = since
		if needs == "recovery" {
			begun := s.ok(Call{Method: http.MethodPost, Path: "/v2/recoveries", JSON: map[string]any{
				"subscription_uid": made.SubscriptionUID,
				"since":            since,
			}})
			identifiers[contracttest.RecoveryUID] = begun.Text("recovery_uid")
		}
	default:
		s.T.Fatalf("the document needs %q, which no test supplies", needs)
	}
	identifiers[contracttest.ApplicationUID] = uid.String()
	return identifiers
}
