package views

import (
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
)

func TestDeliveryChip(t *testing.T) {
	t.Parallel()
	seen := map[ChipProps]string{}
	for _, state := range []string{
		StatePending, StateDelivered, StateRetrying, StateFailed,
		StateCancelled,
	} {
		chip := DeliveryChip(state)
		if chip.Icon == "" || chip.Word == "" || chip.Tone == "" {
			t.Errorf("%s: %+v lacks icon, word or colour", state, chip)
		}
		if other, ok := seen[chip]; ok {
			t.Errorf("%s and %s look alike", state, other)
		}
		seen[chip] = state
	}
	if chip := DeliveryChip("resting"); chip.Word != "resting" {
		t.Errorf("an unknown state reads %q, want it as it is", chip.Word)
	}
}

func TestOutcomeWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		class  string
		want   string
	}{
		{0, "", "Under way"},
		{200, "", "HTTP 200"},
		{503, "http_5xx", "HTTP 503"},
		{404, "http_4xx", "HTTP 404"},
		{301, "http_3xx", "HTTP 301"},
		{0, "dns", "Name not found"},
		{0, "connect", "No connection"},
		{0, "tls", "TLS failed"},
		{0, "timeout", "Timed out"},
		{0, "blocked_address", "Address blocked"},
		{0, "protocol", "Broken answer"},
		{0, "unknown", "Outcome unknown"},
	}
	for _, test := range tests {
		if got := OutcomeWord(test.status, test.class); got != test.want {
			t.Errorf("OutcomeWord(%d, %q) = %q, want %q", test.status, test.class, got, test.want)
		}
	}
}

func TestPips(t *testing.T) {
	t.Parallel()
	due := sampleTime
	tests := []struct {
		name string
		row  DeliveryRow
		want string
	}{
		{"waiting for the first", DeliveryRow{State: StatePending, NextAttempt: due}, "calm,,"},
		{"one failed, one due", DeliveryRow{
			State: StateRetrying, Attempts: 1, ErrorClass: "tls",
			NextAttempt: due,
		}, "bad,calm,"},
		{"second succeeded", DeliveryRow{State: StateDelivered, Attempts: 2}, "bad,good,"},
		{"used up", DeliveryRow{State: StateFailed, Attempts: 3, ErrorClass: "http_5xx"}, "bad,bad,bad"},
		{"unknown", DeliveryRow{State: StateFailed, Attempts: 3, ErrorClass: "unknown"}, "odd,odd,odd"},
		{"cancelled", DeliveryRow{State: StateCancelled, Attempts: 1, ErrorClass: "dns"}, "mute,,"},
	}
	for _, test := range tests {
		var got []string
		for _, pip := range test.row.pips() {
			got = append(got, strings.TrimPrefix(strings.TrimPrefix(pip.class, "pip"), " pip-"))
		}
		if joined := strings.Join(got, ","); joined != test.want {
			t.Errorf("%s: %q, want %q", test.name, joined, test.want)
		}
	}
}

func TestPhaseBar(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name    string
		phases  Phases
		longest time.Duration
		want    string
	}{
		{
			"all phases",
			Phases{DNS: 10 * ms, Connect: 20 * ms, TLS: 30 * ms, FirstByte: 30 * ms, Total: 100 * ms},
			100 * ms,
			"DNS 0+100, Connect 100+200, TLS 300+300, Wait 600+300, Body 900+100",
		},
		{"reused connection", Phases{FirstByte: 50 * ms, Total: 50 * ms}, 100 * ms, "Wait 0+500"},
		{
			"timed out",
			Phases{Connect: 10 * ms, Total: 100 * ms},
			100 * ms,
			"Connect 0+100, No answer 100+900",
		},
		{"never connected", Phases{Total: 100 * ms}, 200 * ms, "No connection 0+500"},
		{
			"too short to see",
			Phases{DNS: 1, FirstByte: 100 * ms, Total: 100*ms + 1},
			100 * ms,
			"DNS 0+2, Wait 0+1000",
		},
		{"nothing measured", Phases{}, 0, ""},
	}
	for _, test := range tests {
		var got []string
		for _, part := range test.phases.bar(test.longest) {
			got = append(got, part.name+" "+Number(part.x)+"+"+Number(part.width))
		}
		want := strings.ReplaceAll(test.want, "+1000", "+1,000")
		if joined := strings.Join(got, ", "); joined != want {
			t.Errorf("%s: %s, want %s", test.name, joined, want)
		}
	}
}

func TestDeliveryPage(t *testing.T) {
	t.Parallel()
	page := render(t, DeliveryDetailPage(sampleDelivery("Sunvolt")))
	var moments []string
	page.Find(".timeline > li").Each(func(_ int, moment *goquery.Selection) {
		id, _ := moment.Attr("id")
		moments = append(moments, id)
	})
	want := "moment-event moment-resend attempt-1 wait-attempt-2 attempt-2 moment-next"
	if got := strings.Join(moments, " "); got != want {
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
	if href, _ := page.Find("a[data-open=resend]").Attr("href"); href != ResendPath(sampleUID) {
		t.Errorf("the re-send button leads to %q without script", href)
	}
}

func TestDeliveryPageWithoutTheRight(t *testing.T) {
	t.Parallel()
	props := sampleDelivery("Sunvolt")
	props.Resend = nil
	page := render(t, DeliveryDetailPage(props))
	if page.Find("#resend, [data-open=resend]").Length() != 0 {
		t.Error("a reader who may not re-send is offered to")
	}
}

func TestTimelineEnding(t *testing.T) {
	t.Parallel()
	running := []AttemptView{{Number: 1, Started: sampleTime, Running: true}}
	tests := []struct {
		name, state, subscription string
		next                      time.Time
		attempts                  []AttemptView
		want                      string
	}{
		{"due", StatePending, "active", sampleTime, nil, "Attempt 1 is due"},
		{"paused", StatePending, "paused", sampleTime, nil, "Waits while the subscription is paused"},
		{"under way", StatePending, "active", sampleTime, running, "waiting for the answer"},
		{"failed", StateFailed, "active", time.Time{}, nil, "Failed: attempts used up"},
		{"cancelled", StateCancelled, "deleted", time.Time{}, nil, "Cancelled"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			props := sampleDelivery("Sunvolt")
			props.Delivery.State, props.Delivery.NextAttempt = test.state, test.next
			props.SubscriptionState, props.Attempts, props.Finished = test.subscription, test.attempts,
				sampleTime
			last := text(render(t, DeliveryRegion(props)).Find(".timeline > li").Last())
			if !strings.Contains(last, test.want) {
				t.Errorf("the timeline ends with %q, want %q", last, test.want)
			}
		})
	}
}

// TestFinishedAttemptsKeepStill pins what live updates rely on: an attempt that
// is over has another id than while it ran, and is left alone afterwards.
func TestFinishedAttemptsKeepStill(t *testing.T) {
	t.Parallel()
	props := sampleDelivery("Sunvolt")
	props.Attempts = []AttemptView{{Number: 1, Started: sampleTime, Running: true}}
	running := render(t, DeliveryRegion(props))
	if running.Find("#attempt-1-running:not([hx-morph-skip])").Length() != 1 {
		t.Error("a running attempt must be replaceable")
	}
	props.Attempts[0].Running, props.Attempts[0].HTTPStatus = false, 200
	if render(t, DeliveryRegion(props)).Find("#attempt-1[hx-morph-skip]").Length() != 1 {
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
		{"too long", strings.Repeat("x", maxVisible+1), false, "of which the first 64.0 KiB are shown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pane := render(t, BodyPane(BodyProps{ID: "b", Body: []byte(test.body), What: "body"}))
			if formatted := pane.Find("[data-tab=Formatted]").Length() == 1; formatted != test.formatted {
				t.Errorf("formatted = %v, want %v", formatted, test.formatted)
			}
			if !strings.Contains(pane.Text(), test.want) {
				t.Errorf("%.200q does not show %q", pane.Text(), test.want)
			}
		})
	}
}
