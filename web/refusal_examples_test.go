package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	loans "drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/web/docs/contracttest"
)

// provoker makes a server give the refusals that its document shows.
type provoker struct {
	*apptest.Server

	stranger, slow, system apptest.Account
	// key is an Idempotency-Key that a request of Home has used.
	key string
}

// ready returns an operation's example with real identifiers.
func (p *provoker) ready(example contracttest.Example) apptest.Call {
	p.T.Helper()
	return asCall(example.Replace(p.Supply(example.Needs)))
}

// asCall returns the example unchanged.
func asCall(example contracttest.Example) apptest.Call {
	call := apptest.Call{Method: example.Method, Path: example.Path, Header: map[string]string{}}
	if example.Body != nil {
		call.JSON = string(example.Body)
		call.Header["Content-Type"] = example.ContentType
	}
	return call
}

// provocation provokes an error example, given the operation's successful example.
type provocation func(p *provoker, well contracttest.Example) apptest.Answer

// changed modifies a request that would have succeeded.
func changed(change func(p *provoker, call *apptest.Call)) provocation {
	return func(p *provoker, well contracttest.Example) apptest.Answer {
		call := p.ready(well)
		change(p, &call)
		return p.Do(call)
	}
}

// saying replaces the body.
func saying(body string) provocation {
	return changed(func(_ *provoker, call *apptest.Call) { call.JSON = body })
}

// with replaces the body by a form, on a loan that needs names.
func with(needs string, form map[string]string, files map[string][]byte) provocation {
	return func(p *provoker, well contracttest.Example) apptest.Answer {
		well.Needs, well.Body = needs, nil
		call := p.ready(well)
		call.Form, call.Files = form, files
		return p.Do(call)
	}
}

// unknown uses the identifiers of the document, which do not exist.
func unknown(p *provoker, well contracttest.Example) apptest.Answer { return p.Do(asCall(well)) }

// malformed replaces the path's identifier by a word.
func malformed(p *provoker, well contracttest.Example) apptest.Answer {
	for _, uid := range []string{
		contracttest.ApplicationUID, contracttest.DeliveryUID, contracttest.RecoveryUID,
		contracttest.FaultUID,
		contracttest.StatementDate,
	} {
		well.Path = strings.ReplaceAll(well.Path, uid, "today")
	}
	return p.Do(asCall(well))
}

// oversized sends a body that the operation ignores but that is part of its key's content.
var oversized = changed(func(_ *provoker, call *apptest.Call) {
	call.JSON = strings.Repeat(" ", 1<<20+1)
	call.Header["Idempotency-Key"] = uuid.NewString()
})

// ofText sends plain text.
var ofText = changed(func(_ *provoker, call *apptest.Call) {
	call.JSON, call.Header["Content-Type"] = "x", "text/plain"
})

// on sends the operation's body to an application in a state that lead prepares.
func on(lead func(p *provoker) uuid.UUID) provocation {
	return func(p *provoker, well contracttest.Example) apptest.Answer {
		return p.Do(asCall(well.Replace(map[string]string{
			contracttest.ApplicationUID: lead(p).String(),
			contracttest.ProductUID:     p.Products["P404020"].String(),
		})))
	}
}

// moved prepares an application that was decided and then moved.
func moved(status string) func(p *provoker) uuid.UUID {
	return func(p *provoker) uuid.UUID {
		uid := p.Offered()
		p.Move(uid, status)
		return uid
	}
}

var (
	early  = map[string]string{"projectCompletedEarly": "true"}
	reduce = map[string]string{"updatedDisbursementAmount": "10000.00"}
	// large is a file that is too large.
	large = map[string][]byte{"certificate.pdf": make([]byte, 10<<20+1)}
	// renamed is a text file with the name of a document.
	renamed = map[string][]byte{"certificate.pdf": []byte("The roof is finished.\n")}
)

// everywhere maps the names of the examples to their provocations; differing ones are keyed
// by operation and name.
var everywhere = map[string]provocation{
	"unauthorized": changed(func(_ *provoker, call *apptest.Call) { call.Anonymous = true }),
	"forbidden": changed(func(p *provoker, call *apptest.Call) {
		call.Header["x-service-merchant-uid"] = p.stranger.MerchantUID.String()
	}),
	"otherKind": changed(func(p *provoker, call *apptest.Call) { call.As = &p.system }),
	"wrongMerchant": changed(func(_ *provoker, call *apptest.Call) {
		call.Header["x-service-merchant-uid"] = "home"
	}),
	"unsupportedMediaType": ofText, "noForm": ofText,
	"tooLarge":                saying(strings.Repeat(" ", 1<<20+1)),
	"fileTooLarge":            with("loan.first", nil, large),
	"resendDelivery/tooLarge": oversized, "sandboxFaultWithdraw/tooLarge": oversized,
	"idempotencyMismatch": changed(func(p *provoker, call *apptest.Call) {
		call.Header["Idempotency-Key"] = p.key
	}),
	"rateLimited": changed(func(p *provoker, call *apptest.Call) { call.As = &p.slow }),
	"internal":    unknown,
	"wrongLimit": func(p *provoker, well contracttest.Example) apptest.Answer {
		path, _, _ := strings.Cut(well.Path, "?")
		well.Path = path + "?limit=1000"
		return p.Do(asCall(well))
	},
	"wrongUid": malformed, "wrongApplicationUid": malformed, "wrongLoanUid": malformed,
	"wrongStatementDate": malformed, "wrongDeliveryUid": malformed, "wrongRecoveryUid": malformed,
	"wrongFaultUid": malformed,
	"noApplication": unknown, "noLoan": unknown, "noDelivery": unknown, "noRecovery": unknown,
	"noTask": unknown, "noDisbursement": unknown, "noFault": unknown, "applicationNotFound": unknown,
	"noStatement": func(p *provoker, well contracttest.Example) apptest.Answer {
		return p.Do(asCall(well.Replace(map[string]string{contracttest.StatementDate: "2999-11-27"})))
	},
	"missingStatus": saying(`{}`), "missingAmount": saying(`{}`), "missingTerms": saying(`{}`),
	"missingTitle": saying(`{}`),
	"wrongFields": saying(`{"borrower":{"first_name":"Ada","last_name":"Moreno"},` +
		`"project":{"name":"Heat pump"}}`),
	"missingField": saying(`{"selected_product_uid":"` + contracttest.ProductUID + `"}`),
	"wrongBooks": saying(`{"disbursements":[` +
		`{"merchantDisbursementId":1042,"net":9625}]}`),
	"wrongScenario":           saying(`{"name":"rich"}`),
	"acceptOffer/offerClosed": on(moved("Closed")),
	"runDecision/decided":     on(func(p *provoker) uuid.UUID { return p.Loan("P404020") }),
	"loanNotOpen":             on(moved("Approved")),
	"notApproved":             on((*provoker).Offered),
	"requestDraw/notApproved": func(p *provoker, well contracttest.Example) apptest.Answer {
		well.Needs = "application.offered"
		call := p.ready(well)
		call.JSON, call.Header, call.Form = nil, nil, documents
		return p.Do(call)
	},
	"finalStatus":         on(moved("Declined")),
	"termsFixed":          on((*provoker).Create),
	"documentsRequired":   with("loan.final", map[string]string{}, nil),
	"documentsNotAllowed": with("loan.first", documents, nil),
	"earlyNotAllowed":     with("loan.first", merge(early, documents), nil),
	"exceedsBalance":      with("loan.first", reduce, nil),
	"combined":            with("loan.middle", merge(early, reduce), nil),
	"fileType":            with("loan.final", nil, renamed),
	"acceptOffer/productNotFound": func(p *provoker, well contracttest.Example) apptest.Answer {
		application := map[string]string{contracttest.ApplicationUID: p.Offered().String()}
		return p.Do(asCall(well.Replace(application)))
	},
	"createApplication/productNotFound": changed(func(_ *provoker, call *apptest.Call) {
		body := apptest.Borrow()
		body["product_uid"] = uuid.New()
		call.JSON = body
	}),
	"cursorExpired": func(p *provoker, _ contracttest.Example) apptest.Answer {
		start := events(p.Server, p.Home, "after=latest").NextCursor
		happen(p.Server, p.Home, "a")
		publish(p.Server)
		p.Exec(p.T, `DELETE FROM feed`)
		return p.Get("/v2/events?after=" + start)
	},
	"pending": func(p *provoker, well contracttest.Example) apptest.Answer {
		return on(func(p *provoker) uuid.UUID {
			uid := p.Loan("P404020")
			p.Draw(uid, nil)
			return uid
		})(p, well)
	},
	"amountFixed": on(func(p *provoker) uuid.UUID {
		uid := p.Loan("P404020")
		p.Move(uid, "Closed")
		return uid
	}),
	"notSent":  saying(`{"status":"DOCUMENT_SIGNED"}`),
	"taskDone": after(`{"status":"Completed"}`, `{"status":"cancelled"}`),
	"alreadySettled": after(`{"status":"FUNDING_PROCESSING"}`, `{"status":"FUNDING_SETTLED"}`,
		`{"status":"CANCELLED"}`),
	"deliveryUnderWay": func(p *provoker, well contracttest.Example) apptest.Answer {
		to := p.SubscribeHome().UID
		happen(p.Server, p.Home, "b")
		publish(p.Server)
		answer := p.Get("/v2/deliveries?subscription_uid=" + to.String())
		uid := regexp.MustCompile(`"delivery_uid":"([^"]+)"`).FindSubmatch(answer.Raw)
		return p.Do(asCall(well.Replace(map[string]string{contracttest.DeliveryUID: string(uid[1])})))
	},
	"recoveryTooOld": func(p *provoker, well contracttest.Example) apptest.Answer {
		identifiers := p.Supply(well.Needs)
		identifiers[contracttest.RecoverySince] = "2020-01-06T09:30:00Z"
		return p.Do(asCall(well.Replace(identifiers)))
	},
	"recoveryUnderWay": func(p *provoker, well contracttest.Example) apptest.Answer {
		call := p.ready(well)
		p.Do(call)
		return p.Do(call)
	},
	"noProductFits": func(p *provoker, _ contracttest.Example) apptest.Answer {
		p.Exec(p.T, `UPDATE products SET active = false`)
		defer p.Exec(p.T, `UPDATE products SET active = true`)
		return p.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/sandbox/scenario",
			JSON: map[string]string{"name": "three_stages"},
		})
	},
	"wrongFault": changed(func(_ *provoker, call *apptest.Call) {
		call.JSON = strings.Replace(fmt.Sprint(call.JSON), `"delay_seconds":60`, `"x":1`, 1)
	}),
	"subscriptionDeleted": func(p *provoker, well contracttest.Example) apptest.Answer {
		call := p.ready(well)
		p.Exec(p.T, `UPDATE subscriptions SET state = 'deleted'`)
		defer p.Exec(p.T, `UPDATE subscriptions SET state = 'active'`)
		return p.Do(call)
	},
	"idempotencyConflict": func(p *provoker, well contracttest.Example) apptest.Answer {
		call, answers := p.ready(well), make(chan apptest.Answer, 1)
		call.Header["Idempotency-Key"] = uuid.NewString()
		var second apptest.Answer
		p.InTx(func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(p.T.Context(), `LOCK TABLE applications`)
			go func() {
				first, err := p.Try(call)
				if err != nil {
					p.T.Error(err)
				}
				answers <- first
			}()
			pgtest.WaitForLock(p.T, p.DB)
			second = p.Do(call)
			return err
		})
		if first := <-answers; first.Status >= http.StatusMultipleChoices {
			p.T.Errorf("the first request was answered %s", first.Raw)
		}
		return second
	},
}

// after sends bodies one after another.
func after(bodies ...string) provocation {
	return func(p *provoker, well contracttest.Example) (answer apptest.Answer) {
		call := p.ready(well)
		for _, body := range bodies {
			call.JSON = body
			answer = p.Do(call)
		}
		return answer
	}
}

// onceOnly are examples that are the same everywhere and expensive to provoke, with the
// operation or test that provokes each.
var onceOnly = map[string]string{
	"idempotencyConflict": "runDecision", "internal": "getLoan", "unavailable": "TestReadOnlyDatabase",
}

// spoilers are the examples that change the server, in order, and what they need.
var spoilers = []struct {
	name  string
	spoil func(p *provoker)
}{
	{"rateLimited", func(p *provoker) {
		at := p.DB.Now()
		p.DB.Now = func() time.Time { return at }
		for range 100 {
			p.Do(apptest.Call{Method: http.MethodGet, Path: "/v2/statements/x", As: &p.slow})
		}
	}},
	{"internal", func(p *provoker) { *p.API.Loans = loans.Service{} }},
}

// shownRefusal is an error example of an operation.
type shownRefusal struct {
	operation, name string
	status          int
	example         *openapi3.Example
}

// compare compares an answer with the example.
func (r shownRefusal) compare(t *testing.T, answer apptest.Answer) {
	t.Helper()
	var body any
	if err := json.Unmarshal(answer.Raw, &body); err != nil || answer.Code() == "" {
		t.Errorf("%s %s answered %s", r.operation, r.name, answer.Raw)
		return
	}
	got, want := said(body), said(r.example.Value)
	if got != want || answer.Status != r.status {
		t.Errorf("%s: %s shows\n%d %sand was answered\n%d %s",
			r.operation, r.name, r.status, want, answer.Status, got)
	}
}

// phase returns after how many of the spoilers it is provoked.
func (r shownRefusal) phase() int {
	for i, one := range spoilers {
		if one.name == r.name {
			return i + 1
		}
	}
	return 0
}

// shownRefusals lists the error examples of partners' operations, in an order in which they
// can be provoked.
func shownRefusals(document *openapi3.T) (list []shownRefusal) {
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				code, _ := strconv.Atoi(status)
				if code < http.StatusBadRequest {
					continue
				}
				examples := response.Value.Content["application/json"].Examples
				for _, name := range slices.Sorted(maps.Keys(examples)) {
					only, once := onceOnly[name]
					if once && only != operation.OperationID {
						continue
					}
					list = append(list, shownRefusal{
						operation.OperationID, name, code, examples[name].Value,
					})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b shownRefusal) int {
		return strings.Compare(fmt.Sprint(a.phase(), a.operation, a.name),
			fmt.Sprint(b.phase(), b.operation, b.name))
	})
	return list
}

// passing matches the parts of messages that vary.
var passing = regexp.MustCompile(
	`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|events\.[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}`)

// said returns the code, message and details of a refusal.
func said(body any) string {
	failure := body.(map[string]any)["result"].(map[string]any)["error"].(map[string]any)
	lines := fmt.Sprintln(failure["code"], failure["message"])
	details, _ := failure["details"].([]any)
	for _, one := range details {
		detail := one.(map[string]any)
		lines += fmt.Sprintln(detail["field"], detail["message"])
	}
	return passing.ReplaceAllString(lines, "*")
}

// TestErrorExamplesAreWhatIsAnswered provokes each error example of the document and
// compares the answer with it.
func TestErrorExamplesAreWhatIsAnswered(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	p := &provoker{
		Server: s, key: "taken", stranger: s.NewAccount("Stranger"), slow: s.NewAccount("Slow"),
		system: s.NewSystem("Servicing", partner.ScopeRead),
	}
	s.SetRate(p.slow, 50, 100)
	s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/application", JSON: apptest.Borrow(),
		Header: map[string]string{"Idempotency-Key": p.key},
	})
	examples, err := s.Contract.Examples()
	if err != nil {
		t.Fatal(err)
	}
	well := map[string]contracttest.Example{}
	for _, example := range slices.Backward(examples) {
		if example.Expect < http.StatusMultipleChoices && example.Body != nil ||
			well[example.Operation].Method == "" {
			well[example.Operation] = example
		}
	}
	phase := 0
	for _, shown := range shownRefusals(s.Contract.Document) {
		for ; phase < shown.phase(); phase++ {
			spoilers[phase].spoil(p)
		}
		provoke := everywhere[shown.operation+"/"+shown.name]
		if provoke == nil {
			provoke = everywhere[shown.name]
		}
		if provoke == nil {
			t.Errorf("nothing provokes %s of %s", shown.name, shown.operation)
			continue
		}
		shown.compare(t, provoke(p, well[shown.operation]))
	}
}
