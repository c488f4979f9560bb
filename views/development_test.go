package views_test

import (
	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/partner"
	"drawbridge/internal/receiver"
	"drawbridge/views/development"
	"drawbridge/views/ui"
)

// developmentSamplePages returns the sample receiver and the mailbox, with the word
// wherever a partner or a borrower could put it.
func developmentSamplePages(word string) map[string]templ.Component {
	framed := func(body templ.Component) templ.Component {
		frame := sampleFrame(word)
		frame.May = func(string) bool { return true }
		return ui.Framed(frame, body)
	}
	mail := email.Email{
		EmailUID: uuid.MustParse(sampleUID), Kind: email.Kind(word), ToAddress: word, Subject: word,
		CreatedAt: sampleTime,
	}
	return map[string]templ.Component{
		"sample receiver": framed(development.Receiver(development.ReceiverProps{
			URL: word, WrongURL: word, Wrong: word,
			Settings: receiver.Settings{Mode: receiver.ModeAccept, Verify: true},
			Partners: []partner.Partner{{UID: uuid.MustParse(sampleUID), Name: word}},
			Received: []receiver.Received{
				{
					Number: 2, At: sampleTime, Delivery: word, Event: word, Attempt: word, Test: true,
					Check: receiver.Check{Text: word}, Duplicate: word, Answer: 401, Body: []byte(word),
				},
				{
					Number: 1, At: sampleTime, Delivery: sampleUID, Answer: 204,
					Check: receiver.Check{Genuine: true},
				},
			},
		})),
		"silent receiver": framed(development.Receiver(development.ReceiverProps{URL: word})),
		"mailbox": framed(development.Mailbox([]email.Email{mail}, email.Detail{Email: mail},
			ui.PagerProps{}, false)),
		"empty mailbox": framed(development.Mailbox(nil, email.Detail{}, ui.PagerProps{}, true)),
	}
}
