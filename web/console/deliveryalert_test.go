package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/views/paths"
)

func TestAnAlertIsResolvedOnTheDeliverysPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	support, b := r.signedIn(), r.asOperator()
	r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	r.useUp("Approved")
	var uid uuid.UUID
	r.must(r.DB.GetContext(t.Context(), &uid, `SELECT delivery_uid FROM deliveries`))
	path := paths.To(paths.Delivery, uid.String())
	seen := support.get(path).wantStatus(t, http.StatusOK)
	if seen.find(".matter").Length() != 1 || seen.find(".matter form").Length() != 0 {
		t.Error("support must see the alert, and is not offered to resolve it")
	}
	page := b.get(path).wantStatus(t, http.StatusOK)
	if text := page.text(".matter"); !strings.Contains(text, "1 delivery") ||
		!strings.Contains(text, "nobody") {
		t.Errorf("the alert is %q", text)
	}
	item, _ := page.find(".matter form").Attr("action")
	away := b.post(item, url.Values{"act": {"take"}, "back": {"//evil.example"}})
	if away.Location != paths.Home {
		t.Errorf("a way back outside leads to %q", away.Location)
	}
	done := b.post(item, url.Values{
		"act": {"resolve"}, "note": {"The partner restarted it"}, "back": {path},
	}).wantStatus(t, http.StatusSeeOther)
	if done.Location != path {
		t.Fatalf("resolving leads to %q", done.Location)
	}
	after := b.get(path)
	if after.find(".matter").Length() != 0 || !strings.Contains(after.text("main"), "Resolved") {
		t.Errorf("afterwards the page says %.200s", after.text("main"))
	}
	if text := b.get(item).text("main"); !strings.Contains(text, "The partner restarted it") {
		t.Error("the note is not kept with the alert")
	}
}

func TestViewsOfEachListAreSaved(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	for path, filter := range map[string]string{
		paths.Applications: "status=Approved", paths.Emails: "state=failed",
		paths.Subscriptions: "state=failing", paths.Events: "kind=task.created",
		paths.Requests: "method=POST", paths.Audit: "kind=delivery",
	} {
		if b.get(path).find(".views-bar").Length() != 0 {
			t.Errorf("%s offers to save the list as it always is", path)
		}
		page := b.get(path+"?"+filter).wantStatus(t, http.StatusOK)
		offered, _ := page.find(".view-save input[name=filter]").Attr("value")
		if offered != filter {
			t.Errorf("%s offers to save %q", path, offered)
		}
		b.post(paths.SavedViews, url.Values{
			"path": {path}, "filter": {offered}, "name": {"Mine"},
		}).wantStatus(t, http.StatusSeeOther)
		link := b.get(path).find(".view-link")
		if href, _ := link.Attr("href"); link.Text() != "Mine" || href != path+"?"+filter {
			t.Errorf("%s leads by %q to %q", path, link.Text(), href)
		}
	}
}

func TestAMoveWithoutATargetLeadsToTheStatuses(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	path := paths.To(paths.Application, r.application.String())
	for _, answer := range []answer{
		b.get(changePath(r.application, "status")),
		b.post(changePath(r.application, "status"), url.Values{}),
	} {
		if answer.wantStatus(t, http.StatusSeeOther).Location != path {
			t.Errorf("it leads to %q", answer.Location)
		}
	}
	if text := b.get(path).text("main"); !strings.Contains(text, "choose the status") {
		t.Errorf("the page says %.200s", text)
	}
}
