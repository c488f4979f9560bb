package views_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/static"
	"drawbridge/views/ui"
)

// payloads are texts that a partner, borrower or endpoint might plant. Each contains the
// word "planted", by which tests find the rendered payload.
func payloads() []string {
	return []string{
		`<script>planted()</script>`,
		`"><script src=//planted.example></script>`,
		`'"><img src=x onerror=planted()>`,
		`<svg/onload=planted()>`,
		`<svg><animate onbegin=planted() attributeName=x>`,
		`</title><script>planted()</script>`,
		`</textarea><script>planted()</script>`,
		`</pre><iframe srcdoc="<script>planted()</script>">`,
		`<a href="javascript:planted()">planted</a>`,
		`javascript:planted()`,
		`data:text/html,<script>planted()</script>`,
		`" onfocus="planted()" autofocus="`,
		`' onmouseover='planted()`,
		`<base href="//planted.example/">`,
		`<meta http-equiv=refresh content="0;url=//planted.example">`,
		`<form action=//planted.example><button>planted`,
		`<hx-partial hx-target="body">planted</hx-partial>`,
		`" hx-get="//planted.example" hx-trigger="load`,
		`<div hx-on:load="planted()">`,
		`<style>body{display:none}</style>planted`,
		`" style="background:url(//planted.example)`,
		`<!--planted--><script>planted()</script>`,
		`<![CDATA[<script>planted()</script>]]>`,
		"<scr\x00ipt>planted()</scr\x00ipt>",
		"planted\u202Egnp.exe",
		`{"planted": "<script>planted()</script>", "n": 1e999}`,
		`{{planted}} ${planted} #{planted}`,
		"planted\xff\xfe<script>planted()</script>",
	}
}

func TestPlantedContentIsInert(t *testing.T) {
	t.Parallel()
	for _, payload := range payloads() {
		t.Run(payload, func(t *testing.T) {
			t.Parallel()
			eachPage(t, payload, checkInert)
		})
	}
}

// checkInert finds everything on a page that could be executed. Pages have scripts and
// styles only from their own origin, and no handler or style attributes at all.
func checkInert(t *testing.T, page *goquery.Document) {
	if !strings.Contains(page.Text()+describe(page.Selection), "planted") {
		t.Error("the payload is nowhere on the page")
	}
	page.Find("iframe:not([sandbox='']), object, embed, base, style, meta[http-equiv]").Each(
		func(_ int, found *goquery.Selection) { t.Errorf("planted element: %s", describe(found)) })
	page.Find("script").Each(func(_ int, found *goquery.Selection) {
		if source, _ := found.Attr("src"); !strings.HasPrefix(source, static.Prefix) ||
			found.Text() != "" {
			t.Errorf("planted script: %s", describe(found))
		}
	})
	page.Find("*").Each(func(_ int, element *goquery.Selection) {
		for _, attribute := range element.Nodes[0].Attr {
			checkAttribute(t, element, attribute.Key, attribute.Val)
		}
	})
}

func checkAttribute(t *testing.T, element *goquery.Selection, key, value string) {
	t.Helper()
	switch {
	case strings.HasPrefix(key, "on"), strings.HasPrefix(key, "hx-on"), key == "style",
		key == "srcdoc":
		t.Errorf("attribute %s: %s", key, describe(element))
	case key == "src", key == "href", key == "action", key == "hx-get", key == "hx-post":
		if !strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//") {
			if !strings.HasPrefix(value, "#") {
				t.Errorf("%s leads away, to %q: %s", key, value, describe(element))
			}
		}
	}
}

func TestEveryPage(t *testing.T) {
	t.Parallel()
	icons := listedIcons(t)
	eachPage(t, "Sunvolt", func(t *testing.T, page *goquery.Document) {
		if lang, _ := page.Find("html").Attr("lang"); lang != "en" {
			t.Errorf("lang = %q, want en", lang)
		}
		if title := text(page.Find("head title")); !strings.HasSuffix(title, "· Drawbridge") {
			t.Errorf("title = %q, want the page's and the product's name", title)
		}
		if got := page.Find("h1").Length(); got != 1 {
			t.Errorf("%d first-level headings, want one", got)
		}
		if page.Find("main#main").Length() != 1 {
			t.Error("no main landmark to skip to")
		}
		checkIDs(t, page)
		checkTables(t, page)
		checkCards(t, page)
		checkNames(t, page)
		page.Find("use").Each(func(_ int, use *goquery.Selection) {
			href, _ := use.Attr("href")
			if _, icon, _ := strings.Cut(href, "#"); !icons[icon] {
				t.Errorf("icon %q is not in icons.txt", icon)
			}
		})
	})
}

func listedIcons(t *testing.T) map[string]bool {
	t.Helper()
	list, err := os.ReadFile("../static/icons.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		listed[strings.TrimSpace(line)] = true
	}
	return listed
}

// checkIDs finds duplicate ids, and references to ids that do not exist.
func checkIDs(t *testing.T, page *goquery.Document) {
	t.Helper()
	ids := map[string]int{}
	page.Find("[id]").Each(func(_ int, element *goquery.Selection) {
		id, _ := element.Attr("id")
		ids[id]++
	})
	for id, count := range ids {
		if count > 1 {
			t.Errorf("id %q stands %d times", id, count)
		}
	}
	for _, key := range []string{
		"for", "aria-labelledby", "aria-describedby", "popovertarget",
		"data-open",
	} {
		page.Find("[" + key + "]").Each(func(_ int, element *goquery.Selection) {
			value, _ := element.Attr(key)
			for id := range strings.FieldsSeq(value) {
				if ids[id] == 0 {
					t.Errorf("%s refers to %q, which is not there", key, id)
				}
			}
		})
	}
}

func checkTables(t *testing.T, page *goquery.Document) {
	t.Helper()
	page.Find("table").Each(func(_ int, table *goquery.Selection) {
		if text(table.ChildrenFiltered("caption")) == "" {
			t.Errorf("a table without a caption: %s", describe(table))
		}
		table.Find("th").Each(func(_ int, header *goquery.Selection) {
			if _, ok := header.Attr("scope"); !ok {
				t.Errorf("a header cell without a scope: %s", describe(header))
			}
		})
	})
}

// checkCards finds figures whose card, which has no table head, does not say what they count.
func checkCards(t *testing.T, page *goquery.Document) {
	t.Helper()
	bare := regexp.MustCompile(`^[\d.,]+$`)
	page.Find("table.cards tbody td").Each(func(_ int, cell *goquery.Selection) {
		table := cell.Closest("table")
		given := "c" + strconv.Itoa(cell.Index()+1)
		if bare.MatchString(text(cell)) && !table.HasClass(given) {
			t.Errorf("a bare figure in a card of %q: %s", text(table.Find("caption")), text(cell))
		}
	})
}

// checkNames finds controls that a screen reader could not name.
func checkNames(t *testing.T, page *goquery.Document) {
	t.Helper()
	page.Find("button, a[href], summary").Each(func(_ int, control *goquery.Selection) {
		label, _ := control.Attr("aria-label")
		if text(control) == "" && label == "" {
			t.Errorf("a control without a name: %s", describe(control))
		}
	})
	page.Find("input:not([type=hidden]), select, textarea").Each(func(_ int,
		control *goquery.Selection,
	) {
		id, _ := control.Attr("id")
		labels := page.Find("label[for='" + id + "'], label:has(#" + id + ")").Length()
		if control.AttrOr("aria-label", "") == "" && labels != 1 {
			t.Errorf("a field without a label: %s", describe(control))
		}
	})
}

func TestFormsWorkWithoutScript(t *testing.T) {
	t.Parallel()
	eachPage(t, "Sunvolt", func(t *testing.T, page *goquery.Document) {
		page.Find("form:not([method=dialog])").Each(func(_ int, form *goquery.Selection) {
			action, _ := form.Attr("action")
			id, _ := form.Attr("id")
			if !strings.HasPrefix(action, "/console") ||
				form.Find("button, input[type=search]").Length() == 0 &&
					page.Find("button[form='"+id+"']").Length() == 0 {
				t.Errorf("a form that leads nowhere: %s", describe(form))
			}
		})
		page.Find("form[hx-post]").Each(func(_ int, form *goquery.Selection) {
			action, _ := form.Attr("action")
			if post, _ := form.Attr("hx-post"); post != action {
				t.Errorf("with script the form posts to %q, without to %q", post, action)
			}
		})
	})
}

func TestTimes(t *testing.T) {
	t.Parallel()
	element := render(t, ui.Time(sampleTime)).Find("relative-time > time")
	if got, _ := element.Attr("datetime"); got != "2026-11-21T09:30:00Z" {
		t.Errorf("datetime = %q", got)
	}
	if got := element.Text(); got != "2026-11-21 09:30:00 UTC" {
		t.Errorf("without script the time reads %q", got)
	}
	if render(t, ui.Time(time.Time{})).Find(".none").Length() != 1 {
		t.Error("the zero time is no dash")
	}
}
