package mail_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/views/mail"
)

var update = flag.Bool("update", false, "write the golden files again")

// sampleLender is the sender of the rendered mails.
func sampleLender() mail.Lender {
	return mail.Lender{Settings: email.Settings{
		LenderName:   "Meadow Lending",
		PrimaryColor: "#1d3f72",
		AccentColor:  "#b84f14",
		ReplyTo:      "help@meadow.example",
	}}
}

func render(t *testing.T, lender mail.Lender, message mail.Message) email.Content {
	t.Helper()
	content, err := mail.Render(t.Context(), lender, message)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func parse(t *testing.T, html string) *goquery.Document {
	t.Helper()
	document, err := goquery.NewDocumentFromReader(strings.NewReader(html))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// TestGolden shows reviewers what a change does to the mails.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, sample := range mail.Samples() {
		t.Run(sample.Name, func(t *testing.T) {
			t.Parallel()
			content := render(t, sampleLender(), sample.Message)
			for name, got := range map[string]string{
				// One element per line makes differences readable.
				sample.Name + ".html": strings.ReplaceAll(content.HTML, "><", ">\n<"),
				sample.Name + ".txt":  "Subject: " + content.Subject + "\n\n" + content.Text,
			} {
				golden(t, name, got)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./views/mail -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-want +got):\n%s", name, diff)
	}
}

// TestGoldenFilesAreUsed finds golden files that no sample uses.
func TestGoldenFilesAreUsed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(mail.Samples()); len(files) != want {
		t.Errorf("testdata holds %d files, the samples make %d", len(files), want)
	}
}

// TestNothingIsLoaded keeps out of mails anything that reveals that a mail was opened, and
// anything that mail programs strip.
func TestNothingIsLoaded(t *testing.T) {
	t.Parallel()
	for _, sample := range mail.Samples() {
		html := render(t, sampleLender(), sample.Message).HTML
		document := parse(t, html)
		for _, selector := range []string{
			"img", "script", "link", "iframe", "object", "form", "input", "svg", "video",
			"[background]", "[onclick]", "[onload]",
		} {
			if found := document.Find(selector).Length(); found != 0 {
				t.Errorf("%s has %d elements that match %s", sample.Name, found, selector)
			}
		}
		for _, word := range []string{"url(", "@import", "expression(", "javascript:"} {
			if strings.Contains(html, word) {
				t.Errorf("%s contains %q", sample.Name, word)
			}
		}
	}
}

// TestReadableEverywhere checks what screen readers and programs without style sheets need.
func TestReadableEverywhere(t *testing.T) {
	t.Parallel()
	for _, sample := range mail.Samples() {
		t.Run(sample.Name, func(t *testing.T) {
			t.Parallel()
			content := render(t, sampleLender(), sample.Message)
			document := parse(t, content.HTML)
			if lang, _ := document.Find("html").Attr("lang"); lang != "en" {
				t.Errorf("the document's language is %q", lang)
			}
			if title := document.Find("title").Text(); title != content.Subject {
				t.Errorf("the title is %q, the subject %q", title, content.Subject)
			}
			if count := document.Find("h1").Length(); count != 1 {
				t.Errorf("%d first-level headings, want 1", count)
			}
			document.Find("table").Each(func(_ int, table *goquery.Selection) {
				role, _ := table.Attr("role")
				if role != "presentation" && table.Find(`th[scope="row"]`).Length() == 0 {
					t.Error("a table is neither for layout nor has header cells")
				}
			})
			document.Find("body *").Each(func(_ int, element *goquery.Selection) {
				if strings.Contains(element.AttrOr("class", ""), "ink") && element.AttrOr("style", "") == "" {
					t.Error("a coloured element has no inlined style")
				}
			})
			document.Find("th").Each(func(_ int, label *goquery.Selection) {
				html, _ := label.Html()
				for word := range strings.FieldsSeq(strings.ReplaceAll(html, "<wbr/>", " ")) {
					if len(word) > 16 {
						t.Errorf("%q takes the place of what it names on a phone", word)
					}
				}
			})
			if len(content.HTML) > 100_000 {
				t.Errorf("%d bytes: some programs cut mails at 102 kB", len(content.HTML))
			}
		})
	}
}

// TestPartsAgree: the plain text has every fact of the HTML part.
func TestPartsAgree(t *testing.T) {
	t.Parallel()
	for _, sample := range mail.Samples() {
		content := render(t, sampleLender(), sample.Message)
		document := parse(t, content.HTML)
		flat := strings.Join(strings.Fields(content.Text), " ")
		document.Find("th, td.line, td.callout, h1, p a.link").Each(func(_ int, cell *goquery.Selection) {
			want := strings.Join(strings.Fields(cell.Text()), " ")
			if !strings.Contains(flat, want) {
				t.Errorf("%s: the text part lacks %q", sample.Name, want)
			}
		})
		if strings.Contains(content.Text, "<") || strings.Contains(content.Text, "&amp;") {
			t.Errorf("%s: the text part holds markup:\n%s", sample.Name, content.Text)
		}
		for line := range strings.Lines(content.Text) {
			if utf8.RuneCountInString(line) > 73 && !strings.Contains(line, "http") {
				t.Errorf("%s: a line of the text part is too long: %q", sample.Name, line)
			}
		}
	}
}

// TestForeignText puts hostile and unusual text into every field.
func TestForeignText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`,
		"Zoë & Søn <b>GmbH</b>",
		"عبد الرحمن",
		"👩‍👩‍👧 Familie",
		"line\r\nBcc: all@example.com",
		strings.Repeat("wide", 100),
		`'; color:red; background:url(//evil.example)`,
	} {
		lender := mail.Lender{Settings: email.Settings{
			LenderName: text, PrimaryColor: text, AccentColor: text, ReplyTo: text,
		}}
		borrower := mail.Borrower{
			FirstName: text, ProjectName: text, MerchantName: text, Reference: text,
		}
		for _, message := range []mail.Message{
			mail.Welcome{Borrower: borrower, ProductName: text, ApprovedAmount: text, Term: text},
			mail.Stipulation{Borrower: borrower, Status: lending.ApplicationStatus(text)},
			mail.Task{Borrower: borrower, Title: text},
			mail.Alert{
				Kind: email.KindSubscriptionFailing, PartnerName: text, URL: text, Since: text,
				Failures: text, LastError: text, ConsoleURL: text,
			},
		} {
			content := render(t, lender, message)
			if strings.ContainsAny(content.Subject, "\r\n") {
				t.Errorf("%T: the subject has more than one line: %q", message, content.Subject)
			}
			document := parse(t, content.HTML)
			if found := document.Find("script, img, b").Length(); found != 0 {
				t.Errorf("%T: %q became %d elements", message, text, found)
			}
			document.Find("[style]").Each(func(_ int, element *goquery.Selection) {
				if style := element.AttrOr("style", ""); strings.Contains(style, "evil") {
					t.Errorf("%T: foreign text reached a style: %s", message, style)
				}
			})
			if strings.Contains(document.Find("style").Text(), "evil") {
				t.Errorf("%T: foreign text reached the style sheet", message)
			}
			shown := strings.Join(strings.Fields(document.Find("bdi").Text()), " ")
			if want := strings.Join(strings.Fields(text), " "); !strings.Contains(shown, want) {
				t.Errorf("%T does not show %q as it is", message, text)
			}
			if !strings.Contains(content.Text, strings.Fields(text)[0]) {
				t.Errorf("%T: the text part lacks %q", message, text)
			}
		}
	}
}

func TestLinksAreSafe(t *testing.T) {
	t.Parallel()
	content := render(t, sampleLender(), mail.Alert{
		Kind: email.KindSubscriptionRecovered, URL: "https://hooks.example",
		ConsoleURL: "javascript:alert(1)",
	})
	parse(t, content.HTML).Find("a").Each(func(_ int, link *goquery.Selection) {
		if strings.HasPrefix(link.AttrOr("href", ""), "javascript:") {
			t.Error("a javascript: address became a link")
		}
	})
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	lender := sampleLender()
	for _, test := range []struct {
		name    string
		message mail.Message
		want    string
	}{
		{"welcome", mail.Welcome{}, "Welcome to Meadow Lending"},
		{
			"authorization",
			mail.Stipulation{Status: lending.StatusHardPullAuthorization},
			"Meadow Lending needs your authorization",
		},
		{
			"clearance",
			mail.Stipulation{Status: lending.StatusPendClearance},
			"Meadow Lending needs something from you",
		},
		{"task", mail.Task{Title: "Sign"}, "A task for your application: Sign"},
		{
			"long task",
			mail.Task{Title: strings.Repeat("x", 300)},
			"A task for your application: " + strings.Repeat("x", 79) + "…",
		},
		{
			"failing",
			mail.Alert{Kind: email.KindSubscriptionFailing, URL: "https://a.example:8443/x"},
			"Webhooks failing: a.example:8443/x",
		},
		{
			"recovered",
			mail.Alert{Kind: email.KindSubscriptionRecovered, URL: "https://a.example"},
			"Webhooks recovered: a.example",
		},
		{
			"used up",
			mail.Alert{Kind: email.KindAttemptsUsedUp, URL: "https://a.example"},
			"Webhook not delivered: a.example",
		},
		{
			"undecided of several days",
			mail.Alert{Kind: email.KindUndecided, Count: "5", Day: "2026-11-24, 2026-11-25"},
			"Applications are waiting for a decision: 5, notice due from 24 November 2026 on",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.message.Subject(lender); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWhoAnswers: a mail asks for replies only if somebody reads them.
func TestWhoAnswers(t *testing.T) {
	t.Parallel()
	welcome := mail.Welcome{Borrower: mail.Borrower{MerchantName: "Sunfield"}}
	silent := mail.Lender{Settings: email.Settings{LenderName: "Meadow"}}
	if text := render(t, silent, welcome).Text; !strings.Contains(text, "do not reply") {
		t.Errorf("without a reply address:\n%s", text)
	}
	reachable := silent
	reachable.ReplyTo = "help@meadow.example"
	if text := render(t, reachable, welcome).Text; !strings.Contains(text, "Reply to this e-mail") {
		t.Errorf("with a reply address:\n%s", text)
	}
}

// TestMissingFacts omits unknown facts, and their heading if all are unknown.
func TestMissingFacts(t *testing.T) {
	t.Parallel()
	content := render(t, mail.Lender{Settings: email.Settings{LenderName: "Meadow"}}, mail.Welcome{})
	document := parse(t, content.HTML)
	if found := document.Find("th").Length(); found != 0 {
		t.Errorf("%d facts without a value", found)
	}
	headings := document.Find("h1, h2").Map(func(_ int, s *goquery.Selection) string {
		return strings.TrimSpace(s.Text())
	})
	if want := []string{"Welcome", "What happens next"}; !slices.Equal(headings, want) {
		t.Errorf("headings are %q, want %q", headings, want)
	}
}

// TestRenderStops: if a component fails, no partial mail is returned.
func TestRenderStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if content, err := mail.Render(ctx, sampleLender(), mail.Welcome{}); err == nil {
		t.Errorf("rendered %d bytes for a request that has ended", len(content.HTML))
	}
}

func TestAmountsNameTheirCurrency(t *testing.T) {
	t.Parallel()
	lender := mail.Lender{Settings: email.Settings{LenderName: "Meadow"}, Currency: "EUR"}
	content := render(t, lender, mail.Welcome{ProductName: "Solar", ApprovedAmount: "12000.00"})
	for part, text := range map[string]string{"text": content.Text, "HTML": content.HTML} {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), "EUR 12,000.00") {
			t.Errorf("the %s part does not say EUR 12,000.00: %s", part, text)
		}
	}
	if undecided := render(t, lender, mail.Welcome{}); strings.Contains(undecided.Text, "EUR") {
		t.Errorf("without an amount there is a currency: %s", undecided.Text)
	}
}

// The contact of a deleted subscription is advised to read events, not to do what would be refused.
func TestContactOfADeletedSubscription(t *testing.T) {
	t.Parallel()
	contact := mail.Contact{
		Subscription: "0193b5a0-11aa-7b20-8c3d-2f4e5a6b7c8d", URL: "https://hooks.example/events",
		Failures: "2", Since: "2026-11-21T09:12:00Z", RecoverSince: "2026-11-22T00:00:00Z",
	}
	for _, deleted := range []bool{false, true} {
		contact.Deleted = deleted
		content := render(t, sampleLender(), contact)
		for _, part := range []string{content.Text, parse(t, content.HTML).Text()} {
			part = strings.Join(strings.Fields(part), " ")
			for words, want := range map[string]bool{
				"follow the feed with GET /v2/events": true, "was deleted meanwhile": deleted,
				"POST /v2/recoveries": !deleted, "The next mail": !deleted, "/resend": !deleted,
			} {
				if strings.Contains(part, words) != want {
					t.Errorf("deleted %t: whether it says %q is to be %t:\n%s", deleted, words, want, part)
				}
			}
		}
	}
}
