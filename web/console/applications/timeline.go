package applications

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/applications"
	"drawbridge/views/emails"
	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// timelinePage is how many entries a page of the timeline shows.
const timelinePage = 50

// timeline loads a page of entries of the chosen kinds; unknown kinds are ignored.
func (f *Feature) timeline(
	ctx context.Context, uid uuid.UUID, query url.Values,
) (shown applications.Timeline, err error) {
	path, kinds := paths.To(paths.Application, uid.String()), application.EntryKinds()
	under := func(kinds []application.EntryKind, before string) string {
		at := maps.Clone(query) // keep the selection of draws and certificates
		at.Del("show")
		at.Del("before")
		for _, kind := range kinds {
			at.Add("show", string(kind))
		}
		if before != "" {
			at.Set("before", before)
		}
		return paths.With(path, at) + "#timeline"
	}
	filter := application.TimelineFilter{Limit: timelinePage}
	filter.Kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind application.EntryKind) bool {
		return !slices.Contains(query["show"], string(kind))
	})
	if filter.Before, err = application.ParseEntryCursor(query.Get("before")); err != nil {
		return shown, err
	}
	found, err := f.Applications.Timeline(ctx, uid, filter)
	if err != nil {
		return shown, err
	}
	shown.Kinds = []ui.Tab{{Label: "All", Href: under(nil, ""), Current: len(filter.Kinds) == 0}}
	// Each tab toggles its kind.
	for _, kind := range kinds {
		others := slices.DeleteFunc(slices.Clone(kinds), func(other application.EntryKind) bool {
			return slices.Contains(filter.Kinds, other) == (other == kind)
		})
		shown.Kinds = append(shown.Kinds, ui.Tab{
			Label: entryMarks[kind].tab, Href: under(others, ""),
			Current: slices.Contains(filter.Kinds, kind),
		})
	}
	if !found.Next.IsZero() {
		shown.Older = under(filter.Kinds, found.Next.String())
	}
	if !filter.Before.IsZero() {
		shown.Newest = under(filter.Kinds, "")
	}
	outcomes, err := f.outcomes(ctx, found.Entries)
	if err != nil {
		return shown, err
	}
	for _, found := range found.Entries {
		one := entry(ctx, found)
		uid, _ := uuid.Parse(found.ID) // others, such as draws, cause no deliveries
		if outcome, sent := outcomes[uid]; sent {
			one.Outcome = &outcome
		}
		shown.Entries = append(shown.Entries, one)
	}
	return shown, nil
}

// outcomes reads the delivery outcomes of the events among entries, by event id.
func (f *Feature) outcomes(
	ctx context.Context, entries []application.TimelineEntry,
) (map[uuid.UUID]delivery.EventOutcome, error) {
	var events []uuid.UUID
	var oldest time.Time
	for _, found := range entries {
		if uid, err := uuid.Parse(found.ID); err == nil && lending.EventKind(found.Name).IsKnown() {
			events, oldest = append(events, uid), found.At // newest first
		}
	}
	return f.Webhooks.Deliveries.EventOutcomes(ctx, events, oldest)
}

// entryMarks are the name and the icon of each kind of entry.
var entryMarks = map[application.EntryKind]struct {
	tab, icon string
	tone      ui.Tone
}{
	application.EntryStatus:   {"Status", "zap", ui.Calm},
	application.EntryOffer:    {"Amount and terms", "percent", ui.Odd},
	application.EntryDocument: {"Documents", "file-text", ui.Calm},
	application.EntryFunding:  {"Draws and funding", "banknote", ui.Good},
	application.EntryTask:     {"Tasks", "list-checks", ui.Warn},
	application.EntryCall:     {"API calls", "activity", ui.Mute},
	application.EntryEmail:    {"E-mails", "mail", ui.Mute},
	application.EntryOperator: {"Operators", "user", ui.Odd},
}

// entry describes an entry of the timeline.
func entry(ctx context.Context, m application.TimelineEntry) applications.Entry {
	mark := entryMarks[m.Kind]
	shown := applications.Entry{ID: m.Name + "-" + m.ID, At: m.At, Icon: mark.icon, Tone: mark.tone}
	switch {
	case m.Kind == application.EntryCall:
		wordCall(&shown, m)
	case m.Kind == application.EntryEmail:
		shown.Title = "E-mail " + m.Name
		if slices.Contains([]string{"welcome", "stipulation", "task"}, m.Name) {
			shown.Title = ui.Capital(m.Name) + " e-mail"
		}
		shown.Chip, shown.Href = new(emails.Chip(m.State, false)), paths.To(paths.Email, m.ID)
		shown.Text = "to " + m.Party
		if m.Text != "" {
			shown.Text += ": " + m.Text
		}
		if m.Again {
			shown.Tag = "re-send"
		}
	case m.Kind == application.EntryOperator:
		shown.Title, shown.Code = operations.ActionWords(m.Name), m.Name
		shown.Text = "by " + m.Party
		if m.Text != "" {
			shown.Text += ": " + m.Text
		}
	case lending.EventKind(m.Name).IsKnown():
		kind := lending.EventKind(m.Name)
		shown.Title = kind.Title() + ": " + ui.StatusWord(m.State)
		shown.Code = m.Name
		shown.Text = eventText(ctx, m)
		shown.Href = paths.To(paths.Event, m.ID)
	case m.Name == application.NameCreated:
		shown.Title = "Application created"
		shown.Text = applications.SourceWord(lending.Source(m.State))
	case m.Name == application.NameCertificate:
		shown.Title = "Completion certificate stored"
		shown.Text = ui.Plural(m.Count, "file", "files")
		shown.Href = "#certificate-" + m.ID
	case m.Name == application.NameDraw:
		shown.Title = "Draw #" + m.ID + " requested"
		shown.Text = fmt.Sprintf("%s, %s gross, by %s", m.State, ui.Amount(ctx, *m.Amount), m.Party)
		shown.Href = "#draw-" + m.ID
	default:
		wordStep(ctx, &shown, m)
	}
	return shown
}

// wordStep describes a funding step of a draw, with what was said about it.
func wordStep(ctx context.Context, shown *applications.Entry, m application.TimelineEntry) {
	var parts []string
	word := "processing"
	switch m.Name {
	case application.NameSettled:
		word = "settled"
	case application.NameCancelled:
		word = "cancelled"
		shown.Icon, shown.Tone = "ban", ui.Mute
		parts = append(parts, ui.Amount(ctx, *m.Amount)+" gross are available again")
	case application.NameReturned:
		word = "returned"
		shown.Icon, shown.Tone = "rotate-ccw", ui.Bad
		parts = append(parts,
			"The money came back: "+ui.Amount(ctx, *m.Amount)+" gross are available again")
	}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	if m.Party != "" {
		parts = append(parts, "by "+m.Party)
	}
	shown.Title, shown.Text = "Draw #"+m.ID+" "+word, strings.Join(parts, " · ")
	shown.Href = "#draw-" + m.ID
}

// wordCall describes a partner's request and its answer. Users identify an operation by the
// last word of its path.
func wordCall(shown *applications.Entry, m application.TimelineEntry) {
	chip := ui.AnswerChip(m.HTTPStatus)
	words := strings.Split(m.State, "/")
	operation := words[len(words)-1]
	if _, err := uuid.Parse(operation); err == nil && len(words) > 1 {
		operation = words[len(words)-2]
	}
	shown.Title, shown.Href = m.Name+" "+operation, paths.To(paths.Request, m.ID)
	shown.Chip, shown.Tone = &chip, chip.Tone
	took := ui.Duration(time.Duration(m.DurationUS) * time.Microsecond)
	parts := []string{"by " + m.Party, took}
	if m.ErrorClass != "" {
		parts = append(parts, m.ErrorClass)
	}
	parts = append(parts, "request "+m.Text)
	if m.Note != "" {
		parts = append(parts, "key "+m.Note)
	}
	shown.Text = strings.Join(parts, " · ")
	if m.Again {
		shown.Tag = "repeated"
	}
}

// eventText returns details of an event's payload that its title lacks, empty if the
// payload cannot be parsed.
func eventText(ctx context.Context, m application.TimelineEntry) string {
	var payload struct {
		TaskTitle string `json:"task_title"`
		Data      struct {
			Approved *lending.OfferPayload `json:"approved_offer"`
			Previous *lending.OfferPayload `json:"previous_approved_offer"`
			Updated  *lending.OfferPayload `json:"updated_approved_offer"`
		} `json:"data"`
	}
	if err := json.Unmarshal(m.Body, &payload); err != nil {
		return ""
	}
	switch before, after := payload.Data.Previous, payload.Data.Updated; {
	case payload.TaskTitle != "":
		return payload.TaskTitle
	case before != nil && after != nil:
		var changed []string
		for _, field := range []struct{ name, before, after string }{
			{"Approved amount", grouped(ctx, before.ApprovedAmount), grouped(ctx, after.ApprovedAmount)},
			{"Term", before.Term, after.Term},
			{"Interest rate", before.InterestRate, after.InterestRate},
			{"Merchant fee", before.MerchantFeePercentage, after.MerchantFeePercentage},
		} {
			if field.before != field.after {
				changed = append(changed, field.name+" "+field.before+" → "+field.after)
			}
		}
		return strings.Join(changed, ", ")
	case payload.Data.Approved != nil:
		return "Approved amount " + grouped(ctx, payload.Data.Approved.ApprovedAmount)
	}
	return ""
}

// grouped formats an amount of a payload as pages do; any other text is kept.
func grouped(ctx context.Context, text string) string {
	amount, err := lending.ParseMoney(text)
	if err != nil {
		return text
	}
	return ui.Amount(ctx, amount)
}
