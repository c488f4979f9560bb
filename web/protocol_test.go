package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	loans "drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/web/docs/contracttest"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	stranger := s.NewAccount("Stranger")
	uid := s.Create()
	path := "/v2/application/" + uid.String()
	for _, test := range []struct {
		name   string
		header map[string]string
		status int
		code   string
	}{
		{"none", nil, 401, "UNAUTHORIZED"},
		{"id only", map[string]string{"x-service-client-id": s.Home.ClientID}, 401, "UNAUTHORIZED"},
		{
			"wrong secret", map[string]string{
				"x-service-client-id": s.Home.ClientID, "x-service-client-secret": stranger.Secret,
			}, 401, "UNAUTHORIZED",
		},
		{
			"own merchant", map[string]string{
				"x-service-client-id": s.Home.ClientID, "x-service-client-secret": s.Home.Secret,
				"x-service-merchant-uid": s.Home.MerchantUID.String(),
			}, 200, "",
		},
		{
			"another's merchant", map[string]string{
				"x-service-client-id": s.Home.ClientID, "x-service-client-secret": s.Home.Secret,
				"x-service-merchant-uid": stranger.MerchantUID.String(),
			}, 403, "FORBIDDEN",
		},
		{
			"malformed merchant", map[string]string{
				"x-service-client-id": s.Home.ClientID, "x-service-client-secret": s.Home.Secret,
				"x-service-merchant-uid": "home",
			}, 400, "VALIDATION_ERROR",
		},
		{
			"stranger", map[string]string{
				"x-service-client-id": stranger.ClientID, "x-service-client-secret": stranger.Secret,
			}, 404, "NOT_FOUND",
		},
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: path, Anonymous: true, Header: test.header,
		})
		if answer.Status != test.status || answer.Code() != test.code {
			t.Errorf("%s: answered %s", test.name, answer.Raw)
		}
	}
}

// hostile are wrong ways to call a route and their answers. An empty code means any refusal
// that is not an internal error.
var hostile = []struct {
	name   string
	change func(call *apptest.Call)
	code   string
	// body means that the route must read a body.
	body bool
}{
	{"no credentials", func(c *apptest.Call) { c.Anonymous = true }, "UNAUTHORIZED", false},
	{
		"wrong method", func(c *apptest.Call) { c.Method = http.MethodPatch },
		"METHOD_NOT_ALLOWED", false,
	},
	{"options", func(c *apptest.Call) { c.Method = http.MethodOptions }, "METHOD_NOT_ALLOWED", false},
	{
		"wrong content type",
		func(c *apptest.Call) {
			c.JSON, c.Header = "<x/>", map[string]string{"Content-Type": "text/xml"}
		},
		"UNSUPPORTED_MEDIA_TYPE", true,
	},
	{
		"oversized", func(c *apptest.Call) { c.JSON = `{"x":"` + strings.Repeat("a", 1<<20) + `"}` },
		"", true,
	},
	{"invalid UTF-8", func(c *apptest.Call) { c.JSON = "{\"status\":\"\xff\xfe\"}" }, "", true},
	{"NUL", func(c *apptest.Call) { c.JSON = `{"title":"a` + `\u0000` + `b"}` }, "", true},
	{"truncated", func(c *apptest.Call) { c.JSON = `{"status":` }, "", true},
	{"no object", func(c *apptest.Call) { c.JSON = `[]` }, "", true},
	{"two objects", func(c *apptest.Call) { c.JSON = `{}{}` }, "", true},
	{
		"bad key",
		func(c *apptest.Call) { c.Header = map[string]string{"Idempotency-Key": "a b"} }, "", true,
	},
}

// quietDay is a day before there was any data.
const quietDay = "2020-01-06"

// readsNone are the changing routes whose path says everything.
var readsNone = []string{"/v2/deliveries/:uid/resend", "/v2/sandbox/faults/:uid"}

func TestEveryRouteRefusesHostileCalls(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := s.NewSystem("everything", partner.Scopes()...)
	for _, route := range s.API.Routes() {
		path := strings.NewReplacer(":uid", uuid.NewString(), ":id", "4711", ":date", quietDay).
			Replace(route.Path)
		as := s.Home
		if route.IsLender() {
			as = system
		}
		for _, way := range hostile {
			reads := route.Method != http.MethodGet && !slices.Contains(readsNone, route.Path)
			if way.body && !reads {
				continue
			}
			call := apptest.Call{Method: route.Method, Path: path, As: &as}
			if reads && !route.Upload {
				call.JSON = "{}"
			}
			way.change(&call)
			answer := s.Do(call)
			code := answer.Code()
			if answer.Status < 400 || answer.Status >= 500 || code == "" ||
				(way.code != "" && code != way.code) {
				t.Errorf("%s %s, %s: answered %s", route.Method, route.Path, way.name, answer.Raw)
			}
			if answer.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s %s, %s: no request id", route.Method, route.Path, way.name)
			}
		}
		if route.Method == http.MethodGet || route.Upload {
			continue
		}
		answer := s.Do(apptest.Call{
			Method: route.Method, Path: path, As: &as,
			JSON:   strings.Repeat(" ", int(max(route.MaxBody, 1<<20))+1),
			Header: map[string]string{"Idempotency-Key": "oversized"},
		})
		if answer.Code() != "PAYLOAD_TOO_LARGE" {
			t.Errorf("%s %s, oversized under a key: answered %s", route.Method, route.Path, answer.Raw)
		}
	}
}

// outsiders are callers who may see nothing of Home's merchant: those of other partners,
// and those of Home's own partner that act for another merchant.
type outsiders struct{ plain, groups map[string]apptest.Account }

func newOutsiders(s *apptest.Server) outsiders {
	s.T.Helper()
	group, members := s.NewGroup("Group", 2)
	group.MerchantUID = members[0].MerchantUID
	sibling, siblings := s.NewSibling(s.Home)
	return outsiders{
		plain: map[string]apptest.Account{
			"a stranger": s.NewAccount("Stranger"), "a group's member": members[0],
			"a sibling": sibling,
		},
		groups: map[string]apptest.Account{"a group": group, "a group of siblings": siblings},
	}
}

// calls returns the ways in which they call a route.
func (o outsiders) calls(allMerchants bool) map[string]apptest.Call {
	calls := map[string]apptest.Call{}
	for name, account := range o.plain {
		calls[name] = apptest.Call{As: &account}
	}
	for name, account := range o.groups {
		calls[name+" for one"] = apptest.Call{As: &account, Header: map[string]string{
			"x-service-merchant-uid": account.MerchantUID.String(),
		}}
		if allMerchants {
			calls[name+" for all"] = apptest.Call{As: &account}
		}
	}
	return calls
}

// ownSubscription creates a subscription to all events of Home's merchant only.
func ownSubscription(s *apptest.Server) uuid.UUID {
	s.T.Helper()
	return subscribe(s, s.Home, func(settings *subscription.Settings) {
		settings.Merchants = []uuid.UUID{s.Home.MerchantUID}
	}).UID
}

func TestEveryRouteHidesOtherMerchants(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	others := newOutsiders(s)
	loan := s.Loan("P404020")
	drawn := s.Draw(loan, nil)
	failed := s.Fail(loan, ownSubscription(s))
	made := func(path, uid string, body map[string]any) string {
		answer := call(s, s.Home, http.MethodPost, path, body)
		if answer.Text(uid) == "" {
			t.Fatalf("%s answered %s", path, answer.Raw)
		}
		return answer.Text(uid)
	}
	// The object that a path's uid names, by path prefix; otherwise it is the loan.
	uids := map[string]string{
		"/v2/deliveries/": failed.UID.String(),
		"/v2/recoveries/": made("/v2/recoveries", "recovery_uid", map[string]any{
			"subscription_uid": failed.SubscriptionUID,
			"since":            failed.EventAt.Add(-time.Minute).UTC().Format(time.RFC3339),
		}),
		"/v2/sandbox/faults/": made("/v2/sandbox/faults", "fault_uid", map[string]any{
			"subscription_uid": failed.SubscriptionUID, "fault": "duplicate",
		}),
		"/v2/sandbox/task/": made("/v2/sandbox/application/"+loan.String()+"/task", "task_uid",
			map[string]any{"title": "Sign"}),
	}
	bodies := map[string]any{
		"sandboxStatus":     map[string]any{"status": "Closed"},
		"sandboxAmount":     map[string]any{"approved_amount": "1.00"},
		"sandboxTerms":      map[string]any{"term": "12"},
		"sandboxDocument":   map[string]any{"status": "DOCUMENT_SENT"},
		"sandboxTask":       map[string]any{"title": "x"},
		"sandboxTaskStatus": map[string]any{"status": "Completed"},
		"sandboxFunding":    map[string]any{"status": "CANCELLED"},
		"compareStatement":  map[string]any{"disbursements": []any{}},
	}
	for _, route := range s.API.Routes() {
		if !strings.Contains(route.Path, ":") {
			continue
		}
		uid := loan.String()
		for prefix, other := range uids {
			if strings.HasPrefix(route.Path, prefix) {
				uid = other
			}
		}
		path := strings.NewReplacer(":uid", uid, ":id", fmt.Sprint(apptest.DisbursementID(drawn)),
			":date", quietDay).Replace(route.Path)
		for name, call := range others.calls(route.AllMerchants) {
			call.Method, call.Path, call.JSON = route.Method, path, bodies[route.Name]
			if answer := s.Do(call); answer.Code() != "NOT_FOUND" {
				t.Errorf("%s %s answered %s: %s", route.Method, route.Path, name, answer.Raw)
			}
		}
	}
}

// Objects named in a body are hidden too: the answer is the same as for objects that do not exist.
func TestEveryBodyHidesOtherMerchants(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	others := newOutsiders(s)
	offered, subscribed := s.Offered(), ownSubscription(s)
	since := s.DB.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	ownAlone := []string{"createApplication", "sandboxScenario"} // name no objects
	bodies := map[string]struct {
		uid  uuid.UUID
		body func(uid uuid.UUID) map[string]any
	}{
		"runDecision": {offered, func(uid uuid.UUID) map[string]any {
			return map[string]any{"thrive_application_uid": uid}
		}},
		"acceptOffer": {offered, func(uid uuid.UUID) map[string]any {
			return map[string]any{
				"thrive_application_uid": uid, "selected_product_uid": s.Products["P404020"],
			}
		}},
		"createRecovery": {subscribed, func(uid uuid.UUID) map[string]any {
			return map[string]any{"subscription_uid": uid, "since": since}
		}},
		"sandboxFault": {subscribed, func(uid uuid.UUID) map[string]any {
			return map[string]any{"subscription_uid": uid, "fault": "duplicate"}
		}},
	}
	for _, route := range s.API.Routes() {
		if route.Method == http.MethodGet || route.IsLender() || strings.Contains(route.Path, ":") ||
			slices.Contains(ownAlone, route.Name) {
			continue
		}
		test, known := bodies[route.Name]
		if !known {
			t.Errorf("no body here names anything for %s", route.Name)
			continue
		}
		for name, call := range others.calls(route.AllMerchants) {
			call.Method, call.Path = route.Method, route.Path
			ask := func(uid uuid.UUID) (apptest.Answer, string) {
				call.JSON = test.body(uid)
				answer := s.Do(call)
				return answer, fmt.Sprint(answer.Status, answer.Code(), answer.Fields(),
					strings.ReplaceAll(answer.Message(), uid.String(), "UID"))
			}
			answer, got := ask(test.uid)
			if _, nothing := ask(uuid.New()); got != nothing || answer.Status < 400 {
				t.Errorf("%s answered %s: %s; of what does not exist it says %s",
					route.Name, name, answer.Raw, nothing)
			}
		}
	}
}

func TestUnknownPathsAnswerTheEnvelope(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for path, code := range map[string]string{
		"/v2/nothing": "NOT_FOUND", "/v2/application/": "NOT_FOUND", "/": "NOT_FOUND",
		"/v2/application//": "NOT_FOUND", "/v2/application/accept-offer/x": "NOT_FOUND",
	} {
		answer := s.Get(path)
		if answer.Code() != code || answer.Timestamp == "" {
			t.Errorf("%s answered %s", path, answer.Raw)
		}
	}
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodOptions} {
		wrong := s.Do(apptest.Call{Method: method, Path: "/v2/application/accept-offer"})
		if wrong.Code() != "METHOD_NOT_ALLOWED" ||
			!strings.Contains(wrong.Header.Get("Allow"), http.MethodPut) {
			t.Errorf("%s answered %s, Allow %q", method, wrong.Raw, wrong.Header.Get("Allow"))
		}
	}
}

func TestNothingLiesBelowAnOperation(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for _, route := range s.API.Routes() {
		if !strings.Contains(route.Path, ":") {
			continue
		}
		path := strings.NewReplacer(":uid", s.Create().String(), ":id", "4711").Replace(route.Path)
		for _, method := range []string{route.Method, http.MethodPatch, http.MethodOptions} {
			for _, rest := range []string{"/", "/nothing", "/nothing/at/all"} {
				answer := s.Do(apptest.Call{Method: method, Path: path + rest})
				if answer.Status != http.StatusNotFound || answer.Code() != "NOT_FOUND" {
					t.Errorf("%s %s answered %s", method, path+rest, answer.Raw)
				}
			}
		}
	}
}

// TestInventedMethodsAreCountedAsOne: a client that invents methods must not fill the
// memory or the metrics.
func TestInventedMethodsAreCountedAsOne(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t)
	origin := strings.TrimSuffix(s.URL, apptest.BasePath)
	invented := []string{"BREW", "WHEN", "PROPFIND"}
	for _, method := range invented {
		request, err := http.NewRequestWithContext(t.Context(), method, origin+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	scrape := httptest.NewRecorder()
	s.Metrics.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	metrics := scrape.Body.String()
	for _, unwanted := range invented {
		if strings.Contains(metrics, unwanted) {
			t.Errorf("%s has series of its own", unwanted)
		}
	}
	wanted := `drawbridge_http_requests_total{method="_OTHER",route="/healthz",status="405"} 3`
	if !strings.Contains(metrics, wanted) {
		t.Errorf("%s is not in the metrics", wanted)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for sent, echoed := range map[string]bool{
		"order-4711": true, "with space": false, strings.Repeat("x", 129): false, "<script>": false,
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/nothing",
			Header: map[string]string{"X-Request-Id": sent},
		})
		if got := answer.Header.Get("X-Request-Id"); (got == sent) != echoed || got == "" {
			t.Errorf("%q came back as %q", sent, got)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P404020")
	call := func(key, path string, body any, form map[string]string) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: path, JSON: body, Form: form,
			Header: map[string]string{"Idempotency-Key": key},
		})
	}
	draw := "/v2/loan/" + loan.String() + "/request-draw"
	half := map[string]string{"updatedDisbursementAmount": "5000.00"}
	first := call("draw-1", draw, nil, half)
	again := call("draw-1", draw, nil, half)
	if first.Status != http.StatusOK || !bytes.Equal(first.Raw, again.Raw) ||
		again.Header.Get("Idempotency-Replayed") != "true" ||
		first.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("answered %s and then %s", first.Raw, again.Raw)
	}
	other := call("draw-1", draw, nil, map[string]string{"updatedDisbursementAmount": "4000.00"})
	if other.Code() != "IDEMPOTENCY_MISMATCH" || other.Status != http.StatusUnprocessableEntity {
		t.Errorf("other content answered %s", other.Raw)
	}
	pending := call("draw-2", draw, nil, nil)
	if pending.Code() != "DRAW_PENDING" {
		t.Fatalf("a second draw answered %s", pending.Raw)
	}
	id := apptest.DisbursementID(first)
	s.Fund(id, "FUNDING_PROCESSING")
	s.Fund(id, "FUNDING_SETTLED")
	if answer := call("draw-2", draw, nil, nil); answer.Status != http.StatusOK {
		t.Errorf("an answer of 500 was kept: %s", answer.Raw)
	}
	created := call("app-1", "/v2/application", apptest.Borrow(), nil)
	alias := call("app-1", "/application", apptest.Borrow(), nil)
	if created.Status != http.StatusCreated || !bytes.Equal(created.Raw, alias.Raw) {
		t.Errorf("the two paths answered %s and %s", created.Raw, alias.Raw)
	}
	wrong := call("app-2", "/v2/application", map[string]any{}, nil)
	corrected := call("app-2", "/v2/application", apptest.Borrow(), nil)
	if wrong.Code() != "VALIDATION_ERROR" || corrected.Status != http.StatusCreated ||
		corrected.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("refused with %s, the corrected request got %s", wrong.Raw, corrected.Raw)
	}
	late := call("app-2", "/v2/application", map[string]any{}, nil)
	if late.Code() != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("a wrong body under the key of a success answered %s", late.Raw)
	}
}

// TestRefusalsLeaveTheirKeysFree makes every kind of wrong request, each followed by a good
// one under the same key.
func TestRefusalsLeaveTheirKeysFree(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P404020").String()
	text := map[string]string{"Content-Type": "text/plain"}
	for name, test := range map[string]struct {
		call apptest.Call
		code string
	}{
		"content type": {
			apptest.Call{Path: "/v2/application", JSON: "{}", Header: text},
			"UNSUPPORTED_MEDIA_TYPE",
		},
		"content type of a draw": {
			apptest.Call{Path: "/v2/loan/" + loan + "/request-draw", JSON: "{}", Header: text},
			"UNSUPPORTED_MEDIA_TYPE",
		},
		"content coding": {
			apptest.Call{
				Path: "/v2/application", JSON: "\x1f\x8b\x08", Header: map[string]string{
					"Content-Encoding": "gzip",
				},
			}, "UNSUPPORTED_MEDIA_TYPE",
		},
		"content coding of a draw": {
			apptest.Call{
				Path: "/v2/loan/" + loan + "/request-draw", JSON: "{}", Header: map[string]string{
					"Content-Encoding": "utf-8, gzip",
				},
			}, "UNSUPPORTED_MEDIA_TYPE",
		},
		"content coding of a form": {
			apptest.Call{
				Path: "/v2/loan/" + loan + "/completion-cert-upload", Form: documents,
				Header: map[string]string{"Content-Encoding": "gzip"},
			}, "UNSUPPORTED_MEDIA_TYPE",
		},
		"what a draw alone makes": {
			apptest.Call{Path: "/v2/sandbox/disbursement/1/status", JSON: `{"status":"FUNDING_REQUESTED"}`},
			"VALIDATION_ERROR",
		},
		"too large": {
			apptest.Call{Path: "/v2/application", JSON: strings.Repeat(" ", 1<<20+1)},
			"PAYLOAD_TOO_LARGE",
		},
		"application's uid": {
			apptest.Call{Path: "/v2/sandbox/application/x/status", JSON: "no JSON"}, "VALIDATION_ERROR",
		},
		"loan's uid": {
			apptest.Call{Path: "/v2/loan/x/request-draw", Form: documents}, "VALIDATION_ERROR",
		},
		"unknown loan": {
			apptest.Call{Path: "/v2/loan/" + uuid.NewString() + "/request-draw"}, "NOT_FOUND",
		},
		"disbursement's id": {
			apptest.Call{Path: "/v2/sandbox/disbursement/x/status", JSON: "{}"}, "VALIDATION_ERROR",
		},
	} {
		key := map[string]string{"Idempotency-Key": uuid.NewString()}
		call := test.call
		call.Method, call.Header = http.MethodPost, merge(call.Header, key)
		first, again := s.Do(call), s.Do(call)
		if first.Code() != test.code || again.Code() != test.code ||
			again.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s: answered %s, then %s", name, first.Raw, again.Raw)
		}
		key["Content-Encoding"] = "utf-8" // a charset, which changes nothing
		made := s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/application", JSON: apptest.Borrow(), Header: key,
		})
		if made.Status != http.StatusCreated {
			t.Errorf("%s: under its key a good request got %s", name, made.Raw)
		}
	}
	if files := storedFiles(t, s); len(files) > 0 {
		t.Errorf("refused calls left %v", files)
	}
}

// TestUsedKeysAreToldOfFirst repeats a key with a request that is refused without its body:
// the key's own refusal takes precedence, whether or not the client expects "100 Continue".
func TestUsedKeysAreToldOfFirst(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	key := map[string]string{"Idempotency-Key": "used"}
	made := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/application", JSON: apptest.Borrow(), Header: key,
	})
	if made.Status != http.StatusCreated {
		t.Fatalf("answered %s", made.Raw)
	}
	for _, path := range []string{
		"/v2/application", "/v2/sandbox/application/x/status", "/v2/loan/x/request-draw",
	} {
		for form, answer := range map[string]apptest.Answer{
			"at once": s.Do(apptest.Call{
				Method: http.MethodPost, Path: path, JSON: "{}",
				Header: merge(key, map[string]string{"Content-Type": "text/plain"}),
			}),
			"asking first": beginSlow(t, s, s.Home, path, "idempotency-key: used\r\n"+
				"content-type: text/plain\r\ncontent-length: 2\r\n").send("{}"),
		} {
			if answer.Code() != "IDEMPOTENCY_MISMATCH" {
				t.Errorf("%s, %s: answered %s", path, form, answer.Raw)
			}
		}
	}
}

func TestRateLimitHoldsAcrossServers(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	second := apptest.StartServer(t, s.DB)
	at := s.DB.Now()
	s.DB.Now = func() time.Time { return at }
	slow := s.NewAccount("Slow")
	s.SetRate(slow, 5, 10)
	allowed := map[int]int{}
	for i := range 40 {
		server := s
		if i%2 == 1 {
			server = second
		}
		answer := server.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/application/" + uuid.NewString(), As: &slow,
		})
		allowed[answer.Status]++
		if answer.Status == http.StatusTooManyRequests &&
			(answer.Header.Get("Retry-After") == "" || answer.Code() != "RATE_LIMITED") {
			t.Errorf("limited without saying so: %s %v", answer.Raw, answer.Header)
		}
		if answer.Header.Get("RateLimit-Limit") != "10" {
			t.Errorf("RateLimit-Limit is %q", answer.Header.Get("RateLimit-Limit"))
		}
	}
	if diff := cmp.Diff(map[int]int{404: 10, 429: 30}, allowed); diff != "" {
		t.Errorf("with the clock standing still:\n%s", diff)
	}
}

func TestExamplesOfTheContractWork(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := s.NewSystem("everything", partner.Scopes()...)
	for _, list := range []struct {
		as       apptest.Account
		examples func() ([]contracttest.Example, error)
	}{{s.Home, s.Contract.Examples}, {system, s.Contract.LenderExamples}} {
		examples, err := list.examples()
		if err != nil {
			t.Fatal(err)
		}
		if len(examples) < 15 {
			t.Fatalf("the document has only %d examples", len(examples))
		}
		for _, example := range examples {
			t.Run(example.Operation+"/"+example.Name, func(t *testing.T) {
				request, err := example.Replace(s.Supply(example.Needs)).Request(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				response := s.Send(list.as, request)
				if response.Status != example.Expect {
					t.Errorf("answered %s, the document promises %d", response.Raw, example.Expect)
				}
			})
		}
	}
}

// TestReadOnlyDatabase sends requests while the database is read-only, as after a failover
// to a standby.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	s.Exec(t, `
		DO $$ BEGIN
		    EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on',
		                   current_database());
		END $$`)
	s.DB.SetMaxIdleConns(0) // the setting applies to new connections
	answer := s.Get("/v2/loan/" + uuid.NewString())
	if answer.Status != http.StatusServiceUnavailable || answer.Code() != "UNAVAILABLE" ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("answered %v %s", answer.Header, answer.Raw)
	}
	example := s.Contract.Document.Components.Examples["Unavailable"].Value
	shownRefusal{"getLoan", "unavailable", http.StatusServiceUnavailable, example}.compare(t, answer)
}

func TestPanicsAnswerTheEnvelope(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	// Without its database the service dereferences nil.
	*s.API.Loans = loans.Service{}
	answer := s.Get("/v2/loan/" + uuid.NewString())
	if answer.Status != http.StatusInternalServerError || answer.Code() != "INTERNAL" ||
		strings.Contains(string(answer.Raw), "nil pointer") {
		t.Errorf("answered %s", answer.Raw)
	}
}
