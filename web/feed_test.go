package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/subscription"
)

// eventObject is an event of the feed.
type eventObject struct {
	UID         uuid.UUID `json:"event_uid"`
	Sequence    int64     `json:"sequence"`
	Event       string    `json:"event"`
	Subject     string    `json:"subject"`
	Merchant    uuid.UUID `json:"merchant_uid"`
	Application uuid.UUID `json:"thrive_application_uid"`
	Reference   *string   `json:"external_reference"`
	Timestamp   string    `json:"timestamp"`
	Body        *string   `json:"body"`
}

// feedPage is an answer of either feed.
type feedPage struct {
	Events       []eventObject `json:"events"`
	NextCursor   string        `json:"next_cursor"`
	LastSequence int64         `json:"last_sequence"`
	HasMore      bool          `json:"has_more"`
}

func feedPageOf(answer apptest.Answer) (feedPage, error) {
	var page feedPage
	err := json.Unmarshal(answer.Result.Data, &page)
	if answer.Status != http.StatusOK {
		err = fmt.Errorf("answered %s", answer.Raw)
	}
	return page, err
}

// events requests one page of the feed.
func events(s *apptest.Server, as apptest.Account, query string) feedPage {
	s.T.Helper()
	page, err := feedPageOf(s.Do(apptest.Call{
		Method: http.MethodGet, Path: "/v2/events?" + query, As: &as,
	}))
	if err != nil {
		s.T.Fatal(err)
	}
	return page
}

// follow reads the feed to its present end.
func follow(s *apptest.Server, as apptest.Account, query string) (all []eventObject, pages int) {
	s.T.Helper()
	page := events(s, as, query)
	for {
		all = append(all, page.Events...)
		if pages++; !page.HasMore {
			return all, pages
		}
		page = events(s, as, query+"&after="+page.NextCursor)
	}
}

// happen causes the events of a new application: its decision, a task, the task's end.
func happen(s *apptest.Server, as apptest.Account, reference string) uuid.UUID {
	s.T.Helper()
	body := apptest.Borrow()
	body["external_reference"] = reference
	post := func(path string, body any) apptest.Answer {
		return s.Do(apptest.Call{Method: http.MethodPost, Path: path, JSON: body, As: &as})
	}
	uid := post("/v2/application", body).Text("thrive_application_uid")
	post("/v2/application/create-run-decision", map[string]any{"thrive_application_uid": uid})
	task := post("/v2/sandbox/application/"+uid+"/task", map[string]any{"title": "Sign"})
	post("/v2/sandbox/task/"+task.Text("task_uid")+"/status", map[string]any{"status": "Completed"})
	return uuid.MustParse(uid)
}

// perApplication is how many events happen causes.
const perApplication = 3

func TestFeedTellsEveryEventOfOnesMerchants(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	// More merchants than are read one by one.
	group, members := s.NewGroup("Group", 20)
	start := events(s, group, "after=latest")
	if len(start.Events) > 0 || start.HasMore || start.NextCursor == "" {
		t.Errorf("now is %+v", start)
	}
	var applications []uuid.UUID
	for i, account := range []apptest.Account{members[0], s.Home, members[7], members[0]} {
		applications = append(applications, happen(s, account, fmt.Sprint("CRM ", i)))
	}
	publish(s)
	of := func(all []eventObject) (uids []string) {
		for _, event := range all {
			uids = append(uids, fmt.Sprint(event.Application, " ", event.Sequence, " ", event.Event))
		}
		return uids
	}
	kinds := []string{"application.status.update", "task.created", "task.updated"}
	want := func(kinds []string, applications ...uuid.UUID) (uids []string) {
		for _, application := range applications {
			for i, kind := range []string{
				"application.status.update", "task.created", "task.updated",
			} {
				if slices.Contains(kinds, kind) {
					uids = append(uids, fmt.Sprint(application, " ", i+1, " ", kind))
				}
			}
		}
		return uids
	}
	for _, test := range []struct {
		name  string
		as    apptest.Account
		query string
		want  []string
		pages int
	}{
		{"a group", group, "", want(kinds, applications[0], applications[2], applications[3]), 1},
		{
			"a group in pages", group, "limit=2",
			want(kinds, applications[0], applications[2], applications[3]), 5,
		},
		{"a member", members[0], "limit=4", want(kinds, applications[0], applications[3]), 2},
		{"nobody's", members[1], "", nil, 1},
		{"a stranger", s.Home, "limit=3", want(kinds, applications[1]), 1},
		{
			"one kind", group, "event=task.created",
			want(kinds[1:2], applications[0], applications[2], applications[3]), 1,
		},
		{
			"two kinds", members[0], "event=task.created&event=task.updated&event=task.created",
			want(kinds[1:], applications[0], applications[3]), 1,
		},
		{"no such event", members[0], "event=document.sent", nil, 1},
	} {
		all, pages := follow(s, test.as, test.query)
		if diff := cmp.Diff(test.want, of(all)); diff != "" || pages != test.pages {
			t.Errorf("%s: %d pages, want %d: %s", test.name, pages, test.pages, diff)
		}
	}
	// The cursor of another reader works as well.
	later := events(s, members[7], "after="+start.NextCursor)
	if diff := cmp.Diff(want(kinds, applications[2]), of(later.Events)); diff != "" {
		t.Errorf("after another's cursor: %s", diff)
	}
	if now := events(s, group, "after="+later.NextCursor); len(now.Events) > 0 || now.HasMore {
		t.Errorf("after everything comes %+v", now)
	}
}

func TestEventObjectsAreWhatWebhooksCarry(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	var mu sync.Mutex
	var sent []http.Header
	endpoint := apptest.NewEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.Header)
	})
	on := *s.Harness
	on.Partner = s.Home.PartnerUID
	on.Subscribe(t, func(settings *subscription.Settings) { settings.URL = endpoint.URL })
	uid := happen(s, s.Home, "CRM 1/ä")
	draw := s.Draw(s.Loan("P5050"), nil)
	publish(s)
	s.Work(t)
	all, _ := follow(s, s.Home, "")
	var rows []struct {
		UID  uuid.UUID `db:"event_uid"`
		At   time.Time `db:"occurred_at"`
		Body string    `db:"body"`
	}
	if err := s.DB.SelectContext(t.Context(), &rows, `
		SELECT event_uid, occurred_at, convert_from(body, 'UTF8') AS body
		  FROM events
		 ORDER BY occurred_at`); err != nil {
		t.Fatal(err)
	}
	reference := "CRM 1/ä"
	for i, row := range rows[:perApplication] {
		want := eventObject{
			UID: row.UID, Sequence: int64(i + 1), Event: all[i].Event, Subject: all[i].Subject,
			Merchant: s.Home.MerchantUID, Application: uid, Reference: &reference,
			Timestamp: lending.FormatTimestamp(row.At), Body: &row.Body,
		}
		if diff := cmp.Diff(want, all[i]); diff != "" {
			t.Errorf("event %d: %s", i, diff)
		}
	}
	var task string
	if err := s.DB.GetContext(t.Context(), &task, `SELECT task_uid FROM tasks`); err != nil {
		t.Fatal(err)
	}
	subjects := map[string]string{
		"application.status.update": "application/" + uid.String(),
		"task.created":              "task/" + task, "task.updated": "task/" + task,
		"disbursement.funding.status-changed": fmt.Sprint("disbursement/", apptest.DisbursementID(draw)),
	}
	seen := map[string]bool{}
	for _, event := range all {
		want, known := subjects[event.Event]
		if !known || event.Application != uid && !strings.HasPrefix(want, "disbursement/") {
			continue
		}
		seen[event.Event] = true
		if event.Subject != want {
			t.Errorf("%s speaks of %s, want %s", event.Event, event.Subject, want)
		}
	}
	if len(seen) != len(subjects) {
		t.Errorf("only %v happened", seen)
	}
	// The webhook's headers distinguish the same things as the object.
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != len(all) {
		t.Fatalf("%d webhooks, want %d", len(sent), len(all))
	}
	for _, header := range sent {
		i := slices.IndexFunc(all, func(event eventObject) bool {
			return event.UID.String() == header.Get("x-drawbridge-event-id")
		})
		if i < 0 {
			t.Fatalf("a webhook of no event: %v", header)
		}
		wanted := ""
		if all[i].Application == uid {
			wanted = "CRM%201%2F%C3%A4"
		}
		if got := header.Get("x-drawbridge-reference"); got != wanted {
			t.Errorf("a webhook of %s has the reference %q, want %q", all[i].Application, got, wanted)
		}
		if got := header.Get("x-drawbridge-subject"); got != all[i].Subject {
			t.Errorf("a webhook speaks of %s, the feed of %s", got, all[i].Subject)
		}
	}
	// Retention empties the bodies and keeps the rest.
	s.Exec(t, `UPDATE events SET body = '', body_removed_at = now()`)
	for _, event := range events(s, s.Home, "").Events {
		if event.Body != nil {
			t.Errorf("a removed body is %q", *event.Body)
		}
	}
}

func TestEventsOfAnApplicationAreReadBySequence(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 2)
	uid, foreign := happen(s, members[1], "a"), happen(s, s.Home, "b")
	fresh := s.CreateAs(members[0])
	publish(s)
	for _, test := range []struct {
		name, query string
		as          apptest.Account
		application uuid.UUID
		first, last int64
		count       int
		more        bool
	}{
		{"all", "", members[1], uid, 1, 3, 3, false},
		{"by the group", "?limit=3", group, uid, 1, 3, 3, false},
		{"the first", "?limit=2", group, uid, 1, 3, 2, true},
		{"from the second", "?from_sequence=2", group, uid, 2, 3, 2, false},
		{"from beyond", "?from_sequence=4", group, uid, 0, 3, 0, false},
		{"of a new one", "", group, fresh, 0, 0, 0, false},
	} {
		page, err := feedPageOf(s.Do(apptest.Call{
			Method: http.MethodGet, As: &test.as,
			Path: "/v2/application/" + test.application.String() + "/events" + test.query,
		}))
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) != test.count || page.LastSequence != test.last ||
			page.HasMore != test.more || test.count > 0 && page.Events[0].Sequence != test.first {
			t.Errorf("%s: %+v", test.name, page)
		}
	}
	for _, path := range []string{foreign.String(), uuid.NewString()} {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/application/" + path + "/events", As: &group,
		})
		if answer.Code() != "NOT_FOUND" {
			t.Errorf("another's application answered %s", answer.Raw)
		}
	}
}

// A cancelled and a returned draw appear in both feeds, numbered with the other events.
func TestFeedsTellOfCancelledAndReturnedDraws(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	receiver := s.SubscribeHome().UID
	uid := s.Loan("P404020")
	var subjects []string
	for _, moves := range [][]string{
		{"CANCELLED"}, {"FUNDING_PROCESSING", "FUNDING_SETTLED", "RETURNED"},
	} {
		id := apptest.DisbursementID(s.Draw(uid, nil))
		subjects = append(subjects, fmt.Sprint("disbursement/", id))
		for _, status := range moves {
			if answer := s.Fund(id, status); answer.Status != http.StatusOK {
				t.Fatalf("%s answered %s", status, answer.Raw)
			}
		}
	}
	publish(s)
	shown := func(all []eventObject) (lines []string) {
		for _, event := range all {
			var body struct{ Status string }
			if err := json.Unmarshal([]byte(*event.Body), &body); err != nil {
				t.Fatal(err)
			}
			lines = append(lines,
				fmt.Sprint(event.Sequence, " ", event.Event, " ", body.Status, " ", event.Subject))
		}
		return lines
	}
	application := "application/" + uid.String()
	want := []string{
		"1 application.status.update Hard Pull Authorization " + application,
		"2 application.status.update Approved " + application,
		"3 disbursement.funding.status-changed FUNDING_REQUESTED " + subjects[0],
		"4 disbursement.funding.cancelled FUNDING_CANCELLED " + subjects[0],
		"5 disbursement.funding.status-changed FUNDING_REQUESTED " + subjects[1],
		"6 disbursement.funding.status-changed FUNDING_PROCESSING " + subjects[1],
		"7 disbursement.funding.settled FUNDING_SETTLED " + subjects[1],
		"8 disbursement.funding.returned FUNDING_RETURNED " + subjects[1],
	}
	own, err := feedPageOf(s.Get("/v2/application/" + uid.String() + "/events"))
	if err != nil || own.LastSequence != 8 || own.HasMore {
		t.Errorf("the application's feed is %+v, %v", own, err)
	}
	if diff := cmp.Diff(want, shown(own.Events)); diff != "" {
		t.Errorf("the application's feed (-want +got):\n%s", diff)
	}
	for query, selected := range map[string][]string{
		"limit=3":                              want,
		"event=disbursement.funding.returned":  want[7:],
		"event=disbursement.funding.cancelled": want[3:4],
		"event=disbursement.funding.returned&event=disbursement.funding.cancelled&limit=1": {
			want[3], want[7],
		},
	} {
		all, _ := follow(s, s.Home, query)
		if diff := cmp.Diff(selected, shown(all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	checkGaps(s, receiver, own.Events)
}

// Events that retention removed are missing: reading from an older one starts with the oldest kept.
func TestEventsOfAnApplicationBeginWithTheOldestThatIsKept(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := happen(s, s.Home, "a")
	for removed := int64(1); removed <= perApplication; removed++ {
		s.Exec(t, `DELETE FROM events WHERE application_uid = $1 AND sequence = $2`, uid, removed)
		page, err := feedPageOf(
			s.Get("/v2/application/" + uid.String() + "/events?from_sequence=1&limit=1"))
		if err != nil {
			t.Fatal(err)
		}
		left := perApplication - removed
		if len(page.Events) != int(min(left, 1)) || page.LastSequence != perApplication ||
			page.HasMore != (left > 1) || left > 0 && page.Events[0].Sequence != removed+1 {
			t.Errorf("without the first %d: %+v", removed, page)
		}
	}
}

func TestWrongFeedParametersAreNamed(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Create()
	list := "applications." + postgres.Cursor{At: time.Now(), UID: uid}.String()
	for query, fields := range map[string][]string{
		"events?after=":                            {"after"},
		"events?after=12":                          {"after"},
		"events?after=events.":                     {"after"},
		"events?after=events.-1":                   {"after"},
		"events?after=events.01":                   {"after"},
		"events?after=events.99":                   {"after"}, // of another database
		"events?after=events.99999999999999999999": {"after"},
		"events?after=" + list:                     {"after"},
		"events?after=latest&after=latest":         {"after"},
		"events?after=Latest":                      {"after"},
		"events?event=all":                         {"event"},
		"events?event=":                            {"event"},
		"events?event=task.created&event=x":        {"event"},
		"events?limit=0":                           {"limit"},
		"events?limit=501":                         {"limit"},
		"events?limit=%zz":                         {"limit"},
		"events?wait=31":                           {"wait"},
		"events?wait=-1":                           {"wait"},
		"events?wait=1.5":                          {"wait"},
		"events?wait=1&wait=1":                     {"wait"},
		"events?wait=x&limit=x&event=x&after=x":    {"after", "event", "limit", "wait"},
		"application/" + uid.String() + "/events?from_sequence=0":           {"from_sequence"},
		"application/" + uid.String() + "/events?from_sequence=x&limit=501": {"from_sequence", "limit"},
		"application/7/events": {"thrive_application_uid"},
	} {
		answer := s.Get("/v2/" + query)
		got := answer.Fields()
		slices.Sort(got)
		if diff := cmp.Diff(fields, got); answer.Code() != "VALIDATION_ERROR" || diff != "" {
			t.Errorf("%s answered %s", query, answer.Raw)
		}
	}
}

// A cursor that would skip removed events is refused; the refusal names one that works.
func TestExpiredCursorsNameTheOldestThatWorks(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	start := events(s, s.Home, "after=latest").NextCursor
	happen(s, s.Home, "a")
	publish(s)
	remove := func(condition string) {
		s.Exec(t, `DELETE FROM feed `+condition)
	}
	remove(`WHERE position = (SELECT min(position) FROM feed)`)
	for _, rest := range []int{perApplication - 1, 0} {
		answer := s.Get("/v2/events?after=" + start)
		if answer.Status != http.StatusGone || answer.Code() != "CURSOR_EXPIRED" ||
			len(answer.Fields()) != 1 || answer.Fields()[0] != "after" {
			t.Fatalf("answered %s", answer.Raw)
		}
		oldest := answer.Result.Error.Details[0].Message
		for _, query := range []string{"", "after=" + oldest} {
			if page := events(s, s.Home, query); len(page.Events) != rest {
				t.Errorf("%q tells %d events, want %d", query, len(page.Events), rest)
			}
		}
		remove(``)
	}
}

// waiting waits until the given number of requests wait for an event.
func waiting(s *apptest.Server, count int) {
	s.T.Helper()
	waittest.Until(s.T, fmt.Sprintf("%d calls wait", count), func() bool {
		return s.Feed.Waiting() == count
	})
}

// ask sends a request that waits, and returns the channel of its answer.
func ask(s *apptest.Server, as apptest.Account, query string) <-chan apptest.Answer {
	answers := make(chan apptest.Answer, 1)
	go func() {
		answer, err := s.Try(apptest.Call{
			Method: http.MethodGet, Path: "/v2/events?" + query, As: &as,
		})
		if err != nil {
			s.T.Error(err)
		}
		answers <- answer
	}()
	return answers
}

func TestWaitingCallsWakeForTheirOwnEvents(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 3)
	after := "after=" + events(s, group, "after=latest").NextCursor
	own := ask(s, s.Home, after+"&wait=30")
	all := ask(s, group, after+"&wait=30")
	kind := ask(s, members[2], after+"&event=task.updated&wait=30")
	waiting(s, 3)
	if open := s.API.Calls.InFlight(); open > 0 {
		t.Errorf("webhooks yield to %d calls that wait", open)
	}
	uid := happen(s, members[2], "a")
	publish(s)
	for name, answers := range map[string]<-chan apptest.Answer{
		"all": all, "of a kind": kind,
	} {
		page, err := feedPageOf(<-answers)
		if err != nil || len(page.Events) == 0 || page.Events[0].Application != uid {
			t.Errorf("who waits for %s got %+v, %v", name, page, err)
		}
	}
	waiting(s, 1) // not for another merchant's
	happen(s, s.Home, "b")
	publish(s)
	if page, err := feedPageOf(<-own); err != nil || len(page.Events) == 0 {
		t.Errorf("who waited on got %+v, %v", page, err)
	}
	// A reader that got no events still moves past those of others.
	now := events(s, members[0], "after=latest").NextCursor
	none := ask(s, members[0], "wait=2&after="+now)
	waiting(s, 1)
	happen(s, s.Home, "c")
	publish(s)
	if page, err := feedPageOf(<-none); err != nil || len(page.Events) > 0 || page.NextCursor == now {
		t.Errorf("who waited in vain got %+v, %v", page, err)
	}
	// Existing events are answered at once, and all requests are when the process stops.
	if page := events(s, group, "wait=30&"+after); len(page.Events) == 0 {
		t.Errorf("what was there is %+v", page)
	}
	last := ask(s, group, "wait=30&after="+events(s, group, "after=latest").NextCursor)
	waiting(s, 1)
	s.Feed.Release()
	if page, err := feedPageOf(<-last); err != nil || len(page.Events) > 0 || page.NextCursor == "" {
		t.Errorf("at the end came %+v, %v", page, err)
	}
}

// A reader of the feed sees each event once, those of an application in order, while there
// are many concurrent writers.
func TestFeedNeverSkips(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 4)
	const writers, rounds, applications = 64, 12, 500
	var merchants []string
	var uids []uuid.UUID
	for _, member := range members {
		merchants = append(merchants, member.MerchantUID.String())
	}
	err := s.DB.SelectContext(t.Context(), &uids, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT gen_random_uuid(), ($1::uuid[])[1 + n % $2], $3, 'partner', 'Approved', 'enabled', 1,
		       'Ana', 'Lima', 'ana@example.com', 'Roof', now(), now()
		  FROM generate_series(1, $4) AS n
		RETURNING application_uid`,
		"{"+strings.Join(merchants, ",")+"}", len(merchants), members[0].PartnerUID, applications)
	if err != nil {
		t.Fatal(err)
	}
	stop := publishing(s)
	defer stop()
	var writing, reading sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for round := range rounds {
				// Some applications have many writers, most have one.
				uid := uids[(writer*round*round+writer*7)%applications]
				err := s.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
					return s.Services.Events.Record(t.Context(), tx,
						lending.TaskCreated(uid.String(), "Sign", lending.TaskPending))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, query := range []string{"limit=7", "limit=7&wait=5", "limit=100&wait=1"} {
		reading.Go(func() {
			last, seen, after := map[uuid.UUID]int64{}, 0, ""
			deadline := time.Now().Add(waittest.Patience)
			for seen < writers*rounds && time.Now().Before(deadline) {
				answer, err := s.Try(apptest.Call{
					Method: http.MethodGet, Path: "/v2/events?" + query + after, As: &group,
				})
				if err != nil {
					t.Error(err)
					return
				}
				if answer.Status == http.StatusServiceUnavailable {
					continue // the answer asks to retry; an event that is never published is missed below
				}
				page, err := feedPageOf(answer)
				if err != nil {
					t.Error(err)
					return
				}
				for _, event := range page.Events {
					if event.Sequence != last[event.Application]+1 {
						t.Errorf("%s: event %d of %s follows %d",
							query, event.Sequence, event.Application, last[event.Application])
					}
					last[event.Application] = event.Sequence
				}
				seen += len(page.Events)
				after = "&after=" + url.QueryEscape(page.NextCursor)
			}
			if seen != writers*rounds {
				t.Errorf("%s: met %d events of %d", query, seen, writers*rounds)
			}
		})
	}
	writing.Wait()
	reading.Wait()
}

// What a client may read contains nothing of a merchant for which it may not act, whether
// of another partner or of its own.
func TestListsShowNothingOfOtherMerchants(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	others := newOutsiders(s)
	subscribed := ownSubscription(s).String()
	uid := happen(s, s.Home, "Home's own")
	call(s, s.Home, http.MethodPost, "/v2/sandbox/faults",
		map[string]any{"subscription_uid": subscribed, "fault": "duplicate"})
	publish(s)
	for _, route := range s.API.Routes() {
		if route.Method != http.MethodGet || !route.AllMerchants {
			continue
		}
		path := strings.ReplaceAll(route.Path, ":uid", uid.String())
		mine := s.Get(path)
		// No day has ended that a statement could cover.
		if text := string(mine.Raw); !strings.Contains(route.Path, ":uid") &&
			route.Name != "listStatements" &&
			!strings.Contains(text, uid.String()) && !strings.Contains(text, subscribed) {
			t.Errorf("%s does not show its own: %s", path, text)
		}
		for name, call := range others.calls(true) {
			call.Method, call.Path = http.MethodGet, path
			answer := s.Do(call)
			if text := string(answer.Raw); strings.Contains(text, s.Home.MerchantUID.String()) ||
				strings.Contains(text, "Home's own") || strings.Contains(text, subscribed) {
				t.Errorf("%s shows %s %s", path, name, text)
			}
			call.Header = map[string]string{"x-service-merchant-uid": s.Home.MerchantUID.String()}
			if foreign := s.Do(call); foreign.Code() != "FORBIDDEN" {
				t.Errorf("%s took Home's merchant from %s: %s", path, name, foreign.Raw)
			}
		}
	}
}
