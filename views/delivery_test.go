package views_test

import (
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

func TestDeliveryPage(t *testing.T) {
	t.Parallel()
	page := render(t, ui.Framed(sampleFrame("Sunvolt"), deliveries.Detail(sampleDelivery("Sunvolt"))))
	var entries []string
	page.Find(".timeline > li").Each(func(_ int, moment *goquery.Selection) {
		id, _ := moment.Attr("id")
		entries = append(entries, id)
	})
	want := "moment-event moment-resend attempt-1 wait-attempt-2 attempt-2 moment-next"
	if got := strings.Join(entries, " "); got != want {
		t.Errorf("timeline = %s, want %s", got, want)
	}
	if got := text(page.Find("#attempt-2 h3").First()); got != "Attempt 2: 503 Service Unavailable" {
		t.Errorf("heading of the second attempt = %q", got)
	}
	if got := text(page.Find("#moment-next h3")); got != "Attempt 3 is due" {
		t.Errorf("what comes next = %q", got)
	}
	if page.Find("#attempt-1 details[open]").Length() != 0 ||
		page.Find("#attempt-2 details[open]").Length() != 1 {
		t.Error("only the expanded attempt must be open")
	}
	masked := page.Find("#attempt-2 .masked").First()
	if !strings.Contains(text(masked), "(masked)") {
		t.Errorf("a masked header is not said to be: %s", describe(masked))
	}
	if href, _ := page.Find("a[data-open=resend]").Attr("href"); href != paths.To(paths.Resend,
		sampleUID) {
		t.Errorf("the re-send button leads to %q without script", href)
	}
}

func TestDeliveryPageOfADeletedSubscription(t *testing.T) {
	t.Parallel()
	props := sampleDelivery("Sunvolt")
	props.Subscription.State = subscription.StateDeleted
	page := render(t, ui.Framed(sampleFrame("Sunvolt"), deliveries.Detail(props)))
	if page.Find("#resend, [data-open=resend]").Length() != 0 {
		t.Error("a re-send is offered that has nowhere to go")
	}
}

func TestTimelineEnding(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		state        delivery.State
		subscription subscription.State
		due          bool
		want         string
	}{
		{"due", delivery.StatePending, subscription.StateActive, true, "Attempt 1 is due"},
		{
			"paused", delivery.StatePending, subscription.StatePaused, true,
			"Waits while the subscription is paused",
		},
		{"failed", delivery.StateFailed, subscription.StateActive, false, "Failed: attempts used up"},
		{"cancelled", delivery.StateCancelled, subscription.StateDeleted, false, "Cancelled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			props := sampleDelivery("Sunvolt")
			props.Delivery.State, props.Subscription.State = test.state, test.subscription
			props.Delivery.Attempts, props.Delivery.FinishedAt = nil, &sampleTime
			if !test.due {
				props.Delivery.NextAttemptAt = nil
			}
			last := text(render(t, deliveries.Region(props)).Find(".timeline > li").Last())
			if !strings.Contains(last, test.want) {
				t.Errorf("the timeline ends with %q, want %q", last, test.want)
			}
		})
	}
}

// TestFinishedAttemptsKeepStill pins what live updates rely on: an attempt gets another id
// when it ends, and is not updated after that.
func TestFinishedAttemptsKeepStill(t *testing.T) {
	t.Parallel()
	attempt := ui.AttemptView{
		Attempt: delivery.Attempt{Number: 1, StartedAt: sampleTime}, Running: true,
	}
	running := render(t, ui.AttemptEntry(attempt, time.Second))
	if running.Find("#attempt-1-running:not([hx-morph-skip])").Length() != 1 {
		t.Error("a running attempt must be replaceable")
	}
	if heading := running.Find("h3").Text(); !strings.Contains(heading, "waiting for the answer") {
		t.Errorf("a running attempt is called %q", heading)
	}
	attempt.Running, attempt.HTTPStatus = false, 200
	finished := render(t, ui.AttemptEntry(attempt, time.Second))
	if finished.Find("#attempt-1[hx-morph-skip]").Length() != 1 {
		t.Error("a finished attempt must be left alone")
	}
}

func TestBodyPane(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		formatted  bool
		want       string
	}{
		{"object", `{"n":12345678901234567890.10,"s":"<b>"}`, true, `"n": 12345678901234567890.10`},
		{"html", `<h1>Blocked</h1>`, false, `<h1>Blocked</h1>`},
		{"broken json", `{"a":`, false, `{"a":`},
		{"control characters", "a\x1b[31mb", false, "a␛[31mb"},
		{"binary", "\xff\xd8\xff", false, "\uFFFD"},
		{"too long", strings.Repeat("x", 64<<10+1), false, "of which the first 64.0 KiB are shown"},
		{
			// The indentation would take 64 MB.
			"deeply nested", strings.Repeat("[", 4000) + strings.Repeat("1,", 4000) + "1" +
				strings.Repeat("]", 4000),
			false, "[[[[1,1,1",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pane := render(t, ui.BodyPane(ui.BodyProps{Body: []byte(test.body), What: "body"}))
			if formatted := pane.Find("[data-tab=Formatted]").Length() == 1; formatted != test.formatted {
				t.Errorf("formatted = %v, want %v", formatted, test.formatted)
			}
			if !strings.Contains(pane.Text(), test.want) {
				t.Errorf("%.200q does not show %q", pane.Text(), test.want)
			}
		})
	}
}
