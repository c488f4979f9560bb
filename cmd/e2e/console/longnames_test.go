package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/views/paths"
)

// Forms about things with long names of one word fit into a narrow window, and a subscription
// with a long path and no name can be deleted by typing it.
func TestFormsAboutLongNames(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	partner := data.Partners[0].UID.String()
	subscribe := func(url string) string { return w.Subscribe(data, url).UID.String() }
	where := "hooks.example/" + strings.Repeat("p", 400)
	named, nameless := subscribe("https://hooks.example/"), subscribe("https://"+where)
	db := w.Open(t)
	w.Execute(db, `UPDATE subscriptions SET name = repeat('n', 100)
		WHERE url = 'https://hooks.example/'`)
	for _, table := range []string{"merchants", "partners"} {
		w.Execute(db, fmt.Sprintf(`UPDATE %s SET name = repeat('n', 200) WHERE partner_uid = '%s'`,
			table, partner))
	}
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	do(t, browser, chromedp.EmulateViewport(390, 844))
	signIn(t, browser, s.URL, data.Users[0])
	for _, path := range []string{
		paths.To(paths.ClientNew, partner), paths.To(paths.MerchantNew, partner),
		paths.To(paths.SubscriptionDelete, named), paths.To(paths.SubscriptionDelete, nameless),
	} {
		do(t, browser,
			chromedp.Navigate(s.URL+path),
			chromedp.WaitVisible(chromedp.CSS("h1")),
		)
		(&crawler{Harness: w, browser: browser}).reflows(path)
	}
	do(t, browser,
		typeInto("#confirm", where),
		press(`form[action$="/delete"] .button-danger`),
		seen(`//*[contains(., "Deleted. Its log is kept.")]`),
	)
}
