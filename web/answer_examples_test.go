package web_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/webhook/sender"
	"drawbridge/web/docs/contracttest"
)

// shownAnswer returns the data of the first successful answer in an operation's documentation.
func shownAnswer(s *apptest.Server, operationID string) (data map[string]any) {
	s.T.Helper()
	for _, item := range s.Contract.Document.Paths.Map() {
		for _, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if operation.OperationID != operationID || status[0] != '2' {
					continue
				}
				examples := response.Value.Content["application/json"].Examples
				name := slices.Sorted(maps.Keys(examples))[0]
				body := examples[name].Value.Value.(map[string]any)
				return body["result"].(map[string]any)["data"].(map[string]any)
			}
		}
	}
	s.T.Fatalf("no answer of %s is shown", operationID)
	return nil
}

// valuesOf returns the values of fields at any depth, in the order of their names.
func valuesOf(data any, names ...string) (found []string) {
	switch value := data.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if slices.Contains(names, name) {
				found = append(found, fmt.Sprint(name, "=", value[name]))
				continue
			}
			found = append(found, valuesOf(value[name], names...)...)
		}
	case []any:
		for _, one := range value {
			found = append(found, valuesOf(one, names...)...)
		}
	}
	return found
}

// only removes from a list all objects in which the field has none of the values.
func only(data map[string]any, list, field string, values ...string) {
	entries, _ := data[list].([]any)
	data[list] = slices.DeleteFunc(slices.Clone(entries), func(one any) bool {
		return !slices.ContainsFunc(values, func(value string) bool {
			return strings.HasPrefix(fmt.Sprint(one.(map[string]any)[field]), value)
		})
	})
}

// TestAnswersShownFollowTheRequestsShown sends examples and compares those parts of the
// answer that follow from the request alone with the answer in the document.
func TestAnswersShownFollowTheRequestsShown(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	examples, err := s.Contract.Examples()
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]map[string]any{}
	for _, name := range []string{
		"sandboxApplicationAmount/lower", "sandboxApplicationTerms/rate",
		"uploadCompletionCertificate/both",
	} {
		at := slices.IndexFunc(examples, func(one contracttest.Example) bool {
			return one.Operation+"/"+one.Name == name
		})
		request, err := examples[at].Replace(s.Supply(examples[at].Needs)).Request(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		sent[examples[at].Operation] = s.Send(s.Home, request).Data()
	}
	fields := []string{
		"approved_amount", "max_amount", "interest_rate", "merchant_fee_percentage", "term",
		"size", "sha256", "content_type", "status", "communications",
	}
	for operation, got := range sent {
		shown := shownAnswer(s, operation)
		for _, data := range []map[string]any{got, shown} {
			only(data, "offers", "product_code", "P404020", "ROOF-3")
			delete(data, "project")
		}
		if diff := cmp.Diff(valuesOf(shown, fields...), valuesOf(got, fields...)); diff != "" {
			t.Errorf("%s (-shown +answered):\n%s", operation, diff)
		}
	}
}

// TestStatementShown draws and settles within a day, as in the document's example statement.
func TestStatementShown(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P404020")
	s.DrawSettled(loan)
	today := s.Supply("")[contracttest.StatementDate]
	got, shown := s.Get("/v2/statements/"+today).Data(), shownAnswer(s, "getStatement")
	for _, part := range []string{"totals", "disbursements", "events"} {
		only(got, "events", "event", "disbursement.")
		fields := []string{"count", "gross", "fee", "net", "status", "event", "kind"}
		diff := cmp.Diff(valuesOf(shown[part], fields...), valuesOf(got[part], fields...))
		if diff != "" {
			t.Errorf("%s (-shown +answered):\n%s", part, diff)
		}
	}
}

// TestDeliveriesShown compares the document's deliveries and recoveries with real ones.
func TestDeliveriesShown(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	delivery := shownAnswer(s, "getDelivery")
	attempts := delivery["attempts"].([]any)
	if fmt.Sprint(delivery["attempt_count"]) != fmt.Sprint(len(attempts)) {
		t.Errorf("%v attempts, of which %d are shown", delivery["attempt_count"], len(attempts))
	}
	const away = http.StatusServiceUnavailable
	failure := fmt.Sprintf("%s %d %s", sender.CauseStatus.Text(), away, http.StatusText(away))
	for _, one := range attempts {
		if said := one.(map[string]any)["error"]; said != failure {
			t.Errorf("an attempt says %q, really it says %q", said, failure)
		}
	}
	failed := s.Undelivered(s.Create())
	begun := call(s, s.Home, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": failed.SubscriptionUID, "since": s.DB.Now().Add(-time.Minute).UTC(),
	})
	for name, data := range map[string]map[string]any{
		"answered": begun.Data(), "shown": shownAnswer(s, "createRecovery"),
	} {
		if data["until"] != data["created_at"] {
			t.Errorf("%s: without a time to end at it has %v and was made at %v",
				name, data["until"], data["created_at"])
		}
	}
}
