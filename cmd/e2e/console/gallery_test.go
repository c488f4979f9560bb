//go:build walks

package console

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
)

// TestGallery pictures what the README shows of the console, with the data of a first start, in
// the folder of screenshots.
func TestGallery(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	server := w.Serve()
	browser := newBrowser(t)
	var failed struct {
		Deliveries []struct {
			UID          string `json:"delivery_uid"`
			Subscription string `json:"subscription_uid"`
			Application  string `json:"application_id"`
		} `json:"deliveries"`
	}
	e2etest.Until(t, time.Minute, "a delivery failed", func() bool {
		w.JSON(&failed, "delivery", "list", "--state", "failed")
		return len(failed.Deliveries) > 0
	})
	one := failed.Deliveries[0]
	do(t, browser, emulate(looks[0]))
	signIn(t, browser, server.URL, data.Users[0])
	for name, path := range map[string]string{
		"overview":    "",
		"draws":       "/draws",
		"delivery":    "/deliveries/" + one.UID,
		"failures":    "/subscriptions/" + one.Subscription + "/failures",
		"application": "/applications/" + one.Application,
	} {
		do(t, browser, chromedp.Navigate(server.URL+"/console"+path))
		do(t, browser, chromedp.WaitVisible(chromedp.CSS("h1")))
		picture, err := chromedp.Run(browser, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(picturesIn(), name+".png"), picture, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
