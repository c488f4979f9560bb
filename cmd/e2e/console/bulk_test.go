package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// tally is an endpoint that counts how often each delivery arrives.
type tally struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

func newTally(t *testing.T) *tally {
	t.Helper()
	e := &tally{seen: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen[r.Header.Get("x-drawbridge-delivery")]++
	}))
	t.Cleanup(e.Close)
	return e
}

// counts returns how many deliveries arrived, and how many of them repeatedly.
func (e *tally) counts() (arrived, repeated int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, times := range e.seen {
		if times > 1 {
			repeated++
		}
	}
	return len(e.seen), repeated
}

func TestBulkCommands(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), newTally(t)
	data := w.DemoData()
	made := w.Subscribe(data, e.URL)
	w.FailedDeliveries(data, made.UID, 5)
	since := time.Now().Add(-2 * time.Hour).UTC().Format(time.RFC3339)
	var draft e2etest.BulkDetail
	w.JSON(&draft, "bulk", "create", "--recover", "--subscription", made.UID.String(),
		"--since", since, "--pace", "50")
	if draft.State != "draft" || draft.Plan == nil || draft.Plan.Total != 5 || draft.Pace != 50 ||
		len(draft.Plan.Subscriptions) != 1 {
		t.Fatalf("drafted %+v", draft)
	}
	uid := draft.UID.String()
	got := w.Run("", "bulk", "confirm", uid, "--reason", "outage", "--count", "4")
	if got.Status != 1 || !strings.Contains(got.Stderr, "this would now send 5 deliveries, not 4") {
		t.Errorf("a wrong count: %d %s", got.Status, got.Stderr)
	}
	w.JSON(&draft, "bulk", "confirm", uid, "--reason", "outage", "--count", "5")
	if draft.State != "running" || draft.Total != 5 || draft.Counts.Waiting != 5 {
		t.Errorf("confirmed %+v", draft)
	}
	w.JSON(&draft, "bulk", "pause", uid)
	w.JSON(&draft, "bulk", "resume", uid)
	w.Serve("--roles", "worker")
	waittest.Until(t, "the re-send is finished", func() bool {
		w.JSON(&draft, "bulk", "show", uid)
		return draft.State == "finished"
	})
	arrived, repeated := e.counts()
	if draft.Counts.Delivered != 5 || arrived != 5 || repeated != 0 || draft.Plan != nil {
		t.Errorf("%d arrived, %d repeatedly: %+v", arrived, repeated, draft)
	}
	var list struct {
		Bulks []e2etest.Bulk `json:"bulk_resends"`
	}
	w.JSON(&list, "bulk", "list", "--state", "finished")
	if len(list.Bulks) != 1 || *list.Bulks[0].Reason != "outage" {
		t.Errorf("lists %+v", list)
	}
	w.JSON(&draft, "bulk", "create", "--state", "failed")
	var cancelled struct {
		Withdrawn int `json:"withdrawn"`
	}
	w.JSON(&cancelled, "bulk", "cancel", draft.UID.String())
	for _, wrong := range [][]string{
		{"create"},
		{"create", "--recover"},
		{"create", "--state", "failed", "--pace", "0"},
		{"create", "--state", "failed", "--confirm"},
		{"list", "--state", "odd"},
		{"confirm", uid},
		{"show", "x"},
	} {
		if got := w.Run("", append([]string{"bulk"}, wrong...)...); got.Status != 2 ||
			strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("bulk %v: %d %s", wrong, got.Status, got.Stderr)
		}
	}
}

// Pausing a bulk re-send that another user has cancelled shows why not, and keeps the page.
func TestAnOvertakenPauseKeepsThePage(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), newTally(t)
	data := w.DemoData()
	made := w.Subscribe(data, e.URL)
	w.FailedDeliveries(data, made.UID, 5)
	var draft e2etest.BulkDetail
	w.JSON(&draft, "bulk", "create", "--state", "failed")
	uid := draft.UID.String()
	w.JSON(&draft, "bulk", "confirm", uid, "--reason", "outage", "--count", "5")
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	do(t, browser, chromedp.EmulateViewport(1280, 900))
	signIn(t, browser, s.URL, data.Users[1])
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/bulk-resends/"+uid),
		press(`live-status button[data-state=live]`), // stops it
		chromedp.WaitVisible(chromedp.CSS(`live-status button[data-state=paused]`)),
	)
	var withdrawn struct{ Withdrawn int }
	w.JSON(&withdrawn, "bulk", "cancel", uid)
	do(t, browser,
		press(`form[action$="/pause"] button`),
		chromedp.WaitVisible(chromedp.Search(`//*[@id="bulk-fault"][contains(., "cancelled")]`)),
		chromedp.WaitVisible(chromedp.CSS(`#progress-title`)),
		chromedp.WaitVisible(chromedp.CSS(`#results tbody tr`)),
	)
}

// sentWord is how many deliveries the progress page shows as sent.
const sentWord = `document.querySelector(".bulk-bar b").textContent`

func TestOperatorPausesABulkResendOfAThousand(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), newTally(t)
	data := w.DemoData()
	made := w.Subscribe(data, e.URL)
	w.FailedDeliveries(data, made.UID, 1000)
	s := w.Serve()
	browser := newBrowser(t)
	signIn(t, browser, s.URL, data.Users[1])
	do(t, browser,
		chromedp.Navigate(s.URL+"/console/deliveries?state=failed"),
		press(`button[name=all]`),
		chromedp.WaitVisible(chromedp.Search(`//dd[contains(., "1,000")]`)),
		chromedp.SetValue(chromedp.CSS(`#pace`), "20"),
		press(`form[action$="/options"] button`),
		chromedp.WaitVisible(chromedp.Search(`//dd[contains(., "at most 20 a second")]`)),
		press(`[data-open=confirm]`),
		chromedp.WaitVisible(chromedp.CSS(`#dialog-reason`)),
		typeInto(`#dialog-reason`, "the endpoint was down"),
		press(`#confirm .button-main`),
		// The number on the page grows by itself.
		chromedp.WaitVisible(chromedp.Search(
			`//h2[text()="Sending"][//label[contains(@class, "bulk-bar")]//b[text()!="0"]]`)),
		press(`form[action$="/pause"] button`),
		chromedp.WaitVisible(chromedp.Search(`//h2[starts-with(text(), "Paused: ")]`)),
	)
	paused := evaluate(t, browser, sentWord)
	if paused == "0" || paused == "1,000" {
		t.Fatalf("paused with %s sent", paused)
	}
	settled := fmt.Sprintf(`//label[.//span[contains(., "ended")]]//b[text()=%q]`, paused)
	do(t, browser, chromedp.WaitVisible(chromedp.Search(settled)))
	if arrived, _ := e.counts(); fmt.Sprint(arrived) != paused ||
		evaluate(t, browser, sentWord) != paused {
		t.Errorf("%d arrived, %s were sent before the pause, now %s",
			arrived, paused, evaluate(t, browser, sentWord))
	}
	do(t, browser,
		press(`form[action$="/resume"] button`),
		chromedp.WaitVisible(chromedp.Search(`//h2[text()="All have ended"]`)),
		chromedp.WaitVisible(chromedp.Search(`//a[text()="Delivered 1,000"]`)),
	)
	if arrived, repeated := e.counts(); arrived != 1000 || repeated != 0 {
		t.Errorf("%d arrived, %d of them repeatedly", arrived, repeated)
	}
}
