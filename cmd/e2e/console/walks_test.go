//go:build walks

package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
)

func init() {
	looks = slices.Concat(looks[:1], []look{{"1440-dark", wide, "dark", ofTheme}}, looks[1:],
		[]look{{"360-light", narrow, "light", ofTheme}})
}

// task is something that users do in the console.
type task struct {
	name string
	// start is the address where it begins; {name} stands for a known value.
	start string
	do    func(w *walker)
	// end is the text that the page shows when it is done.
	end string
	// script says that it is possible only with script.
	script bool
}

// TestEveryTaskByKeyboard does all tasks of the console with real key events only, and checks at
// each stop of the Tab key that the focus is visible.
func TestEveryTaskByKeyboard(t *testing.T) {
	t.Parallel()
	walkAll(t, "keys")
}

// TestEveryTaskWithoutScript does the same tasks in a browser that runs no script.
func TestEveryTaskWithoutScript(t *testing.T) {
	t.Parallel()
	walkAll(t, "plain")
}

// walkAll does every task on one server, in one browser, and requires that each change that the
// console offers is part of a task.
func walkAll(t *testing.T, name string) {
	t.Helper()
	w := newStage(t, name)
	all, done := tasks(), 0
	if w.plain {
		all = slices.DeleteFunc(all, func(task task) bool { return task.script })
	}
	for _, task := range all {
		t.Run(task.name, func(t *testing.T) {
			w.T = t
			w.does(task)
			done++
		})
	}
	w.T = t
	if done == len(all) { // otherwise missing changes are to be expected
		w.wantsEveryChange()
	}
}

func (w *walker) does(task task) {
	w.Helper()
	if task.start != "" {
		w.goes(task.start)
	}
	task.do(w)
	if task.end != "" {
		w.sees(task.end)
	}
	w.keepsFocus(task.name)
}

// tasks lists the tasks in the order of a working day.
func tasks() []task {
	return slices.Concat([]task{{
		name: "signing in", end: "Deliveries",
		do: func(w *walker) { w.enters(w.known["admin"], w.known["password"]) },
	}},
		supportTasks(), alertTasks(), bulkTasks(), receiverTasks(), subscriptionTasks(),
		partnerTasks(), clientTasks(), productTasks(), applicationTasks(), loanTasks(), mailTasks(),
		settingTasks(), queueTasks(), filterTasks(), accountTasks(), peopleTasks(), lastTasks())
}

// stage has the data that the tasks need.
type stage struct {
	*e2etest.Harness
	db     *postgres.DB
	data   e2etest.Demo
	server *e2etest.Server
}

// newStage starts a server with a failing endpoint, whose deliveries have used up their
// attempts, and a browser.
func newStage(t *testing.T, name string) *walker {
	t.Helper()
	harness := e2etest.New(t)
	s := &stage{Harness: harness, db: harness.Open(t), data: harness.DemoData()}
	e := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(e.Close)
	made := s.Subscribe(s.data, e.URL+"/hook")
	s.FailedDeliveries(s.data, made.UID, 120)
	s.server = s.Serve()
	w := &walker{T: t, stage: s, name: name, plain: name == "plain", folder: t.TempDir()}
	w.known = map[string]string{
		"subscription": made.UID.String(), "endpoint": e.URL,
		"host":  strings.TrimPrefix(e.URL, "http://"),
		"admin": s.data.Users[2].Email, "password": s.data.Users[2].Password,
		"receiver": s.server.URL + "/sample-receiver",
		"pending":  s.loan("pending").String(), "undrawn": s.loan("first_regular").String(),
	}
	w.finds("delivery", `SELECT delivery_uid FROM deliveries ORDER BY created_at LIMIT 1`)
	w.opens()
	return w
}

// loan is the demo data's loan at a stage.
func (s *stage) loan(stage string) uuid.UUID {
	s.T.Helper()
	at := slices.IndexFunc(s.data.Loans, func(l e2etest.DemoLoan) bool { return l.Stage == stage })
	if at < 0 {
		s.T.Fatalf("the demo data has no loan %s", stage)
	}
	return s.data.Loans[at].UID
}

// opens starts the browser.
func (w *walker) opens() {
	w.Helper()
	w.browser = newBrowserWithin(w.T, 25*time.Minute)
	// Without animation the page is scrolled to the focus at once.
	do(w.T, w.browser, emulate(look{width: wide, scheme: "light"}), focused(), keeps(w.folder))
	if w.plain {
		do(w.T, w.browser, withoutScript())
	}
	w.watch()
}

// keeps makes the browser save downloads in a folder.
func keeps(folder string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, browser.SetDownloadBehavior,
			browser.SetDownloadBehaviorParams{
				Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder,
				BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
			})
		return err
	})
}

// finds waits until a query returns a value, and stores it under a name.
func (w *walker) finds(name, query string) {
	w.Helper()
	query = w.named(query)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); ; <-again.C {
		var value string
		err := w.stage.db.GetContext(context.Background(), &value, query)
		if err == nil {
			w.known[name] = value
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%v by %s", err, query)
		}
	}
}

// changes runs a statement, in place of a change that time or another system would cause.
func (w *walker) changes(statement string) {
	w.Helper()
	if _, err := w.stage.db.ExecContext(context.Background(), w.named(statement)); err != nil {
		w.Fatalf("%v in %s", err, statement)
	}
}
