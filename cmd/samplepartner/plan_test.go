package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"drawbridge/web/docs/contracttest"
)

// lender is a fake server with one loan. The client's transport compares each request and each
// response with the published contract.
type lender struct {
	mu       sync.Mutex
	stages   []int // cents
	pending  bool
	draws    []map[string]any
	offers   int
	refusing bool
}

const uid = contracttest.ApplicationUID

func cents(amount int) string { return fmt.Sprintf("%d.%02d", amount/100, amount%100) }

func (l *lender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var data any
	status := http.StatusOK
	switch path := strings.TrimPrefix(r.URL.Path, "/api/v2"); {
	case path == "/application":
		status, data = http.StatusCreated, l.application("Pending Review", 0)
	case path == "/application/create-run-decision":
		data = l.application("Hard Pull Authorization", l.offers)
	case path == "/application/accept-offer":
		data = map[string]any{"thrive_application_uid": uid, "offer_selected": true}
	case strings.HasPrefix(path, "/sandbox/application/"):
		data = l.application("Approved", l.offers)
	case strings.HasPrefix(path, "/sandbox/disbursement/"):
		data = l.fund(r)
	case strings.HasSuffix(path, "/draw-preview"):
		data = l.preview()
	case strings.HasSuffix(path, "/request-draw"):
		data = l.draw(r)
	default:
		data = l.loan()
	}
	w.Header().Set("Content-Type", "application/json")
	for _, name := range []string{
		"X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
	} {
		w.Header().Set(name, "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"timestamp": "2026-11-21T09:30:00.123Z", "statusCode": status,
		"result": map[string]any{"data": data, "error": nil},
	})
}

func (l *lender) application(status string, offers int) map[string]any {
	made := []map[string]any{}
	for i := range offers {
		made = append(made, map[string]any{
			"product_uid":  strings.Replace(contracttest.ProductUID, "4c", fmt.Sprintf("%d0", i), 1),
			"product_code": fmt.Sprintf("P%d", i), "product_name": "Staged", "term": "120",
			"interest_rate": "7.99", "borrower_max_approved_amount": "25000.00",
			"project_max_approved_amount": "25000.00", "max_amount": "25000.00",
			"approved_amount": "25000.00", "merchant_fee_percentage": "0",
		})
	}
	return map[string]any{
		"thrive_application_uid": uid, "merchant_uid": contracttest.MerchantUID,
		"external_reference": nil, "status": status, "communications": "paused",
		"source": "partner", "requested_amount": "25000.00",
		"borrower": map[string]any{"first_name": "A", "last_name": "B", "email": "a@example.com"},
		"project":  map[string]any{"name": "P"}, "offers": made,
		"variables":  map[string]any{"offer_selected": false, "selected_product": nil},
		"created_at": "2026-11-21T09:30:00.123Z", "updated_at": "2026-11-21T09:30:00.123Z",
	}
}

func (l *lender) loan() map[string]any {
	total, drawn, schedule := 0, 0, []map[string]any{}
	for i, stage := range l.stages {
		total += stage
		if i < len(l.draws) {
			drawn += stage
		}
		schedule = append(schedule, map[string]any{
			"stage": i + 1, "percentage": "40.00", "scheduled_amount": cents(stage),
		})
	}
	return map[string]any{
		"loan_application_uid": uid, "merchant_uid": contracttest.MerchantUID,
		"application_status": "Approved", "product_uid": contracttest.ProductUID,
		"product_code": "P0", "original_amount": cents(total), "loan_amount": cents(total),
		"drawn_amount": cents(drawn), "balance": cents(total - drawn), "schedule": schedule,
		"disbursements": l.disbursements(),
	}
}

func (l *lender) disbursements() []map[string]any {
	return append([]map[string]any{}, l.draws...)
}

func (l *lender) preview() map[string]any {
	last := len(l.draws) == len(l.stages)-1
	kind := "regular"
	if last {
		kind = "final"
	}
	amount := any(cents(l.stages[len(l.draws)]))
	refused := any(nil)
	if l.refusing {
		amount, refused = nil, map[string]any{"code": "APPLICATION_NOT_APPROVED", "message": "no"}
	}
	return map[string]any{
		"kind": kind, "stage": len(l.draws) + 1, "gross_amount": amount, "fee_amount": amount,
		"net_amount": amount, "documents_required": last, "refusal": refused,
	}
}

// draw enforces the real rules: no pending draw, and documents with the last stage and no
// other.
func (l *lender) draw(r *http.Request) map[string]any {
	last := len(l.draws) == len(l.stages)-1
	_, _, missing := r.FormFile("files")
	if l.pending || (missing == nil) != last || (r.FormValue("metadata") != "") != last {
		panic(http.ErrAbortHandler)
	}
	amount := cents(l.stages[len(l.draws)])
	drawn := map[string]any{
		"merchantDisbursementId": 100 + len(l.draws), "merchantUid": contracttest.MerchantUID,
		"loanApplicationUid": uid, "grossDisbursedAmount": amount,
		"netDisbursedAmount": amount, "disbursementNumber": len(l.draws) + 1,
		"amountFunded": amount,
	}
	kept := map[string]any{
		"kind": "regular", "status": "FUNDING_REQUESTED",
		"requestedAt": "2026-11-21T09:30:00.123Z", "settledAt": nil,
		"cancelledAt": nil, "returnedAt": nil, "reference": nil, "method": nil,
		"effectiveDate": nil, "reason": nil, "changes": []any{},
	}
	maps.Copy(kept, drawn)
	l.draws, l.pending = append(l.draws, kept), true
	return drawn
}

func (l *lender) fund(r *http.Request) map[string]any {
	var body struct{ Status string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	last := l.draws[len(l.draws)-1]
	last["status"] = body.Status
	l.pending = body.Status != "FUNDING_SETTLED"
	return last
}

func TestARunPaysTheLoanOut(t *testing.T) {
	t.Parallel()
	const address = "http://lender.test/api" // the client's transport dials every lender by it
	published, err := contracttest.Load(address)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		lender  lender
		product string
		want    []string
		err     string
	}{
		{"three stages", lender{stages: []int{1000000, 1000000, 500000}, offers: 2}, "", []string{
			"accepted P0", "a loan of 25000.00 in 3 stages", "draw 1 (regular)",
			"draw 3 (final) requested: gross 5000.00", "draw 3: FUNDING_SETTLED",
			"paid out: 25000.00 in 3 draws",
		}, ""},
		{
			"one stage, a chosen product",
			lender{stages: []int{2500000}, offers: 2},
			strings.Replace(contracttest.ProductUID, "4c", "10", 1),
			[]string{"accepted P1", "draw 1 (final)", "paid out: 25000.00 in 1 draws"},
			"",
		},
		{"no offer", lender{}, "", []string{"decided"}, "no product made an offer"},
		{"another product", lender{offers: 1}, "x", nil, "product x made no offer"},
		{
			"a draw that would be refused",
			lender{stages: []int{1}, offers: 1, refusing: true},
			"",
			[]string{"accepted P0"},
			"APPLICATION_NOT_APPROVED",
		},
	}
	for i := range cases {
		test := &cases[i]
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&test.lender)
			t.Cleanup(server.Close)
			client := quick(address)
			client.HTTP.Transport = published.Transport(t, &http.Transport{
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
				},
			})
			var out strings.Builder
			err := Plan{Amount: "25000.00", ProductUID: test.product}.Run(t.Context(), client, &out)
			if test.err == "" && err != nil ||
				test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("ended with %v, want %q", err, test.err)
			}
			for _, line := range test.want {
				if !strings.Contains(out.String(), line) {
					t.Errorf("does not say %q:\n%s", line, out.String())
				}
			}
		})
	}
}
