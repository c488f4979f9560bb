//go:build walks

package console

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"drawbridge/internal/operator"
	"drawbridge/web/console"
	"drawbridge/web/console/page"
)

// notWalked are the changes that no task makes, by the beginning of the route's name, with
// the reason.
var notWalked = map[string]string{
	"console.river.": "the queue library's own console; pausing queues and running jobs have pages " +
		"of ours, which are walked",
}

// onlyScripts are changes that only a browser with script requests.
var onlyScripts = map[string]string{
	"console.subscription.check": "asked while an address is typed; without script a button of the " +
		"form does it, which is walked",
}

// calls are the changes that a browser has requested and that were not refused.
type calls struct {
	mu   sync.Mutex
	open map[network.RequestID]string
	done map[string]bool
}

// watch records the requests of the browser.
func (w *walker) watch() {
	w.Helper()
	w.calls = &calls{open: map[network.RequestID]string{}, done: map[string]bool{}}
	if err := chromedp.Listen(w.browser, w.calls.note); err != nil {
		w.Fatal(err)
	}
}

func (c *calls) note(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		if event.RedirectResponse != nil {
			c.answered(event.RequestID, event.RedirectResponse.Status)
		}
		address, err := url.Parse(event.Request.URL)
		if err == nil && event.Request.Method != http.MethodGet {
			c.open[event.RequestID] = event.Request.Method + " " + address.Path
		}
	case *network.EventResponseReceived:
		c.answered(event.RequestID, event.Response.Status)
	}
}

func (c *calls) answered(id network.RequestID, status int64) {
	if call := c.open[id]; call != "" && status < http.StatusBadRequest {
		c.done[call] = true
	}
	delete(c.open, id)
}

// routes are the names of the requested routes.
func (c *calls) routes(table []page.Route) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	called := map[string]bool{}
	for call := range c.done {
		best := -1
		var name string
		for _, route := range table {
			if fixed := matches(route.Method+" "+route.Path, call); fixed > best {
				best, name = fixed, route.Name
			}
		}
		called[name] = true
	}
	return called
}

// matches counts the parts that a route and a request have in common; it is -1 if the request
// is for another route.
func matches(route, call string) int {
	want, got := strings.Split(route, "/"), strings.Split(call, "/")
	if len(want) != len(got) {
		return -1
	}
	same := 0
	for i, part := range want {
		switch {
		case part == got[i]:
			same++
		case !strings.HasPrefix(part, ":"):
			return -1
		}
	}
	return same
}

// consoleRoutes is the console's route table with all optional routes.
func (w *walker) consoleRoutes() []page.Route {
	w.Helper()
	site, err := console.New(console.Options{
		PublicURL: "http://console.example", Development: &console.Development{},
		Operators: &operator.Service{DB: w.stage.db}, JobConsole: http.NotFoundHandler(),
	})
	if err != nil {
		w.Fatal(err)
	}
	return site.Routes()
}

// wantsEveryChange fails the test for a route that changes something and is neither used by
// a task nor excused by a reason.
func (w *walker) wantsEveryChange() {
	w.Helper()
	table := w.consoleRoutes()
	called := w.calls.routes(table)
	for _, route := range table {
		if route.Method == http.MethodGet {
			continue
		}
		why := w.excuse(route.Name)
		switch {
		case called[route.Name] && why != "":
			w.Errorf("%s: a task uses %s %s, which is excused: %s", w.name, route.Method, route.Path, why)
		case !called[route.Name] && why == "":
			w.Errorf("%s: no task uses %s %s (%s); write one, or the reason why not into notWalked",
				w.name, route.Method, route.Path, route.Name)
		}
	}
	if len(called) < 40 || !called["console.resend.submit"] {
		w.Errorf("%s: only %d changes were seen: %v", w.name, len(called), called)
	}
}

func (w *walker) excuse(name string) string {
	for start, why := range notWalked {
		if strings.HasPrefix(name, start) {
			return why
		}
	}
	if w.plain {
		return onlyScripts[name]
	}
	return ""
}
