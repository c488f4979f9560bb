package views

import (
	"time"

	"github.com/a-h/templ"
)

// sampleMatter is an item whose texts are all the word.
func sampleMatter(word string) AttentionRow {
	return AttentionRow{
		UID: sampleUID, Kind: "delivery_used_up", Partner: word, URL: word, Severity: "problem",
		Detail: word, Count: 3, Opened: sampleTime, LastSeen: sampleTime, Owner: word,
		LookHref: PathDeliveries, Look: "Show the deliveries",
	}
}

// healthSamplePages are the overview, the queue of what needs attention and the
// system, with the word wherever a partner or an operator could put it.
func healthSamplePages(word string) map[string]templ.Component {
	closed := sampleMatter(word)
	closed.Closed, closed.ClosedBy, closed.Note = sampleTime, word, word
	snoozed := sampleMatter(word)
	snoozed.UID, snoozed.SnoozedUntil = sampleSubscription, sampleTime
	tabs := []Tab{{Label: "Open", Href: PathAttention, Current: true}}
	return map[string]templ.Component{
		"overview": OverviewPage(Overview{
			Frame: sampleFrame(word), Ranges: []Tab{{Label: "1 hour", Href: PathHome, Current: true}},
			StreamURL: PathHomeLive, PollURL: PathHome,
			Numbers: OverviewNumbers{
				Span: "last hour", Outcomes: samplePlot(),
				Tiles: []Tile{{
					Label: "Failed", Value: "3", Note: "of 12", Icon: "circle-x", Tone: Bad,
					Href: PathDeliveries,
				}},
				Latency: LinePlotProps{
					ID: "latency", Title: "Time to answer", Step: "From",
					Series: []Series{{Name: "Median", Tone: Good}},
					Bars:   []Bar{{Start: sampleTime, Values: []int{12}}},
				},
				Attention:    []AttentionRow{sampleMatter(word)},
				Applications: []CountRow{{ID: "a", State: "Approved", Count: "3", Href: PathApplications}},
				Draws:        []CountRow{{ID: "d", State: "Settled", Count: "1"}},
			},
		}),
		"overview without numbers": OverviewPage(Overview{Frame: sampleFrame(word), Unavailable: true}),
		"attention": AttentionListPage(AttentionList{
			Frame: sampleFrame(word), Tabs: tabs, Rows: []AttentionRow{sampleMatter(word), snoozed},
			Active: []ActiveFilter{{Label: word, Href: PathAttention}}, Summary: "2 matters",
			Newest: PathAttention, Older: PathAttention,
		}),
		"nothing needs attention": AttentionListPage(AttentionList{Frame: sampleFrame(word), Tabs: tabs}),
		"attention item": AttentionItemPage(AttentionItem{
			Frame: sampleFrame(word), Row: snoozed, Acts: true, Mine: true, Typed: word,
			Faults: map[string]string{"note": word, "until": word},
		}),
		"closed item": AttentionItemPage(AttentionItem{Frame: sampleFrame(word), Row: closed}),
		"system": SystemPage(System{
			Frame: sampleFrame(word), Facts: []SystemFact{
				{Name: "Mail server", Value: "None", Tone: Warn, Note: word}, {Name: "Address", Value: word},
			},
			Processes: []ProcessRow{{
				ID: "1", Host: word, PID: 7, Roles: "api", Version: "1", Started: sampleTime,
				LastBeat: sampleTime.Add(time.Second), Skew: "1ms", Leads: true, Lost: true,
			}},
			Queues:     []WorkRow{{Name: "webhook", Waiting: 3, Oldest: sampleTime}},
			Chores:     []ChoreRow{{Kind: "housekeep", Does: "Makes room", LastDone: sampleTime}},
			Partitions: []PartitionRow{{Table: "events", Name: "events_y2026m11", Size: "1 B", Rows: "2"}},
			Migrations: []MigrationRow{
				{ID: "1", Name: "0001_river", Applied: true}, {ID: "2", Name: "0002"},
			},
			Database: []SystemFact{{Name: "Oldest transaction", At: sampleTime}},
		}),
	}
}
