package views_test

import (
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/operations"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// sampleMatter is an item whose texts are all the word.
func sampleMatter(word string) ui.AttentionRow {
	return ui.AttentionRow{
		UID: sampleUID, Kind: "delivery_used_up", Partner: word, URL: word, Severity: "problem",
		Detail: word, Count: 3, Opened: sampleTime, LastSeen: sampleTime, Owner: word,
		LookHref: paths.Deliveries, Look: "Show the deliveries",
	}
}

// healthSamplePages are the overview, the queue of what needs attention and the
// system, with the word wherever a partner or an operator could put it.
func healthSamplePages(word string) map[string]templ.Component {
	closed := sampleMatter(word)
	closed.Closed, closed.ClosedBy, closed.Note = sampleTime, word, word
	snoozed := sampleMatter(word)
	snoozed.UID, snoozed.SnoozedUntil = sampleSubscription, sampleTime
	tabs := []ui.Tab{{Label: "Open", Href: paths.Attention, Current: true}}
	return map[string]templ.Component{
		"overview": operations.OverviewPage(operations.Overview{
			Frame: sampleFrame(word), Ranges: []ui.Tab{{Label: "1 hour", Href: paths.Home, Current: true}},
			StreamURL: paths.HomeLive, PollURL: paths.Home,
			Numbers: operations.OverviewNumbers{
				Span: "last hour", Outcomes: ui.BarPlotProps{
					ID: "plot", Title: "Deliveries per hour", Step: "Hour",
					Series: []ui.Series{{Name: "Failed", Tone: ui.Bad}, {Name: "Delivered", Tone: ui.Good}},
					Bars: []ui.Bar{
						{Start: sampleTime, Values: []int{1, 9}},
						{Start: sampleTime.Add(time.Hour), Values: []int{0, 0}},
					},
				},
				Tiles: []ui.Tile{{
					Label: "Failed", Value: "3", Note: "of 12", Icon: "circle-x", Tone: ui.Bad,
					Href: paths.Deliveries,
				}},
				Latency: ui.LinePlotProps{
					ID: "latency", Title: "Time to answer", Step: "From",
					Series: []ui.Series{{Name: "Median", Tone: ui.Good}},
					Bars:   []ui.Bar{{Start: sampleTime, Values: []int{12}}},
				},
				Attention: []ui.AttentionRow{sampleMatter(word)},
				Applications: []operations.CountRow{{
					ID: "a", State: "Approved", Count: "3",
					Href: paths.Applications,
				}},
				Draws: []operations.CountRow{{ID: "d", State: "Settled", Count: "1"}},
			},
		}),
		"overview without numbers": operations.OverviewPage(operations.Overview{
			Frame:       sampleFrame(word),
			Unavailable: true,
		}),
		"attention": operations.AttentionListPage(operations.AttentionList{
			Frame: sampleFrame(word), Tabs: tabs, Rows: []ui.AttentionRow{sampleMatter(word), snoozed},
			Active: []ui.ActiveFilter{{Label: word, Href: paths.Attention}}, Summary: "2 matters",
			Newest: paths.Attention, Older: paths.Attention,
		}),
		"nothing needs attention": operations.AttentionListPage(operations.AttentionList{
			Frame: sampleFrame(word), Tabs: tabs,
		}),
		"attention item": operations.AttentionItemPage(operations.AttentionItem{
			Frame: sampleFrame(word), Row: snoozed, Acts: true, Mine: true, Typed: word,
			Faults: map[string]string{"note": word, "until": word},
		}),
		"closed item": operations.AttentionItemPage(operations.AttentionItem{
			Frame: sampleFrame(word),
			Row:   closed,
		}),
		"system": operations.SystemPage(operations.System{
			Frame: sampleFrame(word), Facts: []operations.SystemFact{
				{Name: "Mail server", Value: "None", Tone: ui.Warn, Note: word}, {Name: "Address", Value: word},
			},
			Processes: []operations.ProcessRow{{
				ID: "1", Host: word, PID: 7, Roles: "api", Version: "1", Started: sampleTime,
				LastBeat: sampleTime.Add(time.Second), Skew: "1ms", Leads: true, Lost: true,
			}},
			Queues: []operations.WorkRow{{Name: "webhook", Waiting: 3, Oldest: sampleTime}},
			Chores: []operations.ChoreRow{{Kind: "housekeep", Does: "Makes room", LastDone: sampleTime}},
			Partitions: []operations.PartitionRow{{
				Table: "events", Name: "events_y2026m11", Size: "1 B",
				Rows: "2",
			}},
			Migrations: []operations.MigrationRow{
				{ID: "1", Name: "0001_river", Applied: true}, {ID: "2", Name: "0002"},
			},
			Database: []operations.SystemFact{{Name: "Oldest transaction", At: sampleTime}},
		}),
	}
}
