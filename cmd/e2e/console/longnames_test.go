package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/views/paths"
)

// Pages about things with long one-word names fit into their window, and a subscription with a
// long path and no name can be deleted by typing the path.
func TestPagesAboutLongNames(t *testing.T) {
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
	w.Execute(db, `UPDATE applications SET borrower_first_name = repeat('f', 100),
		borrower_last_name = repeat('l', 100), external_reference = repeat('م', 100)`)
	w.Execute(db, `INSERT INTO saved_views (view_uid, user_uid, name, path, query, created_at)
		SELECT gen_random_uuid(), user_uid, repeat('w', 60), '/console/deliveries', '', now() FROM users`)
	w.FailedDeliveries(data, uuid.MustParse(named), 1)
	var delivery string
	if err := db.Get(&delivery, `SELECT delivery_uid FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	s := w.Serve("--roles", "console")
	browser := newBrowser(t)
	signIn(t, browser, s.URL, data.Users[0])
	fits := func(path string, width int64) {
		do(t, browser,
			chromedp.EmulateViewport(width, 844),
			chromedp.Navigate(s.URL+path),
			chromedp.WaitVisible(chromedp.CSS("h1")),
		)
		(&crawler{Harness: w, browser: browser}).reflows(path)
	}
	fits(paths.To(paths.Delivery, delivery), 1280)
	fits(paths.Applications, 1280)
	if cut := evaluate(t, browser, `(() => {
		const name = document.querySelector("tbody bdi:dir(rtl)"), first = document.createRange();
		first.setStart(name.firstChild, 0);
		first.setEnd(name.firstChild, 1);
		const end = name.closest("td").getBoundingClientRect().right;
		return first.getBoundingClientRect().right > end ? name.textContent : "";
	})()`); cut != "" {
		t.Errorf("the beginning of %s is cut off", cut)
	}
	for _, path := range []string{
		paths.Deliveries, paths.To(paths.ClientNew, partner), paths.To(paths.MerchantNew, partner),
		paths.To(paths.SubscriptionDelete, named), paths.To(paths.SubscriptionDelete, nameless),
	} {
		fits(path, 390)
	}
	do(t, browser,
		typeInto("#confirm", where),
		press(`form[action$="/delete"] .button-danger`),
		seen(`//*[contains(., "Deleted. Its log is kept.")]`),
	)
}
