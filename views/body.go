package views

import (
	"fmt"
)

// BodyProps is a request's or a response's body.
type BodyProps struct {
	// ID is unique among the bodies of a page.
	ID   string
	Body []byte
	// What names the body: "body", "response body".
	What string
}

// pretty returns the formatted body where it is JSON that is shown whole.
func (p BodyProps) pretty() ([]token, bool) {
	text, clipped := clip(p.Body)
	if clipped {
		return nil, false
	}
	return prettyJSON(Visible(text))
}

// shown is the body as text in which nothing hides.
func (p BodyProps) shown() string {
	text, _ := clip(p.Body)
	return Visible(text)
}

// copyText is what the copy button takes: the same text that is shown, without
// the marks that make hidden characters visible.
func (p BodyProps) copyText() string {
	text, _ := clip(p.Body)
	return text
}

func (p BodyProps) note() string {
	if _, clipped := clip(p.Body); clipped {
		return fmt.Sprintf("%s, of which the first %s are shown",
			byteSize(len(p.Body)), byteSize(maxVisible))
	}
	return byteSize(len(p.Body))
}

// noAnswer says why an attempt has no response to show.
func noAnswer(a AttemptView) string {
	switch {
	case a.Running:
		return "No answer yet."
	case a.ErrorClass == "unknown":
		return "The process that made this attempt ended before it could record the answer. " +
			"The endpoint may or may not have received it."
	}
	return "No answer was received: " + OutcomeWord(0, a.ErrorClass) + "."
}

// underWay tells whether an attempt has begun and not ended.
func underWay(attempts []AttemptView) bool {
	return len(attempts) > 0 && attempts[len(attempts)-1].Running
}

func nextTitle(p DeliveryPage) string {
	return fmt.Sprintf("Attempt %d is due", len(p.Attempts)+1)
}

// timelineCause says where the event comes from.
func timelineCause(r DeliveryRow) string {
	if r.Test {
		return "A test with sample data, which an operator asked for"
	}
	return "Committed together with what it reports: " + Visible(r.Status)
}

// resendTable lists the delivery that this one re-sends, and those that re-send it.
func resendTable(p DeliveryPage) TableProps[ResendView] {
	return TableProps[ResendView]{
		Caption: "Re-sends of this delivery, newest first",
		RowID:   func(r ResendView) string { return "resend-" + r.UID },
		Href:    func(r ResendView) string { return DeliveryPath(r.UID) },
		Rows:    p.Resends,
		Columns: []Column[ResendView]{
			{Title: "State", Class: "w-state", Cell: resendStateCell},
			{Title: "Delivery", Header: true, Cell: resendLinkCell},
			{Title: "By", Class: "col-b w-third", Cell: resendByCell},
			{Title: "Reason", Class: "col-a w-third", Cell: resendReasonCell},
			{Title: "Created", Class: "w-time end", Cell: resendTimeCell},
		},
	}
}
