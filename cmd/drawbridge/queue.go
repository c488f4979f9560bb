package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
	"drawbridge/internal/queue"
)

type queueCmd struct {
	List   queueListCmd   `cmd:"" help:"List the queues: whether workers serve each, and how many jobs wait."`
	Pause  queuePauseCmd  `cmd:"" help:"Stop all processes from taking jobs of a queue; running jobs continue."`
	Resume queueResumeCmd `cmd:"" help:"Resume a paused queue."`
}

type queueListCmd struct{ jsonFlag }

// queueJSON is a queue as commands print it.
type queueJSON struct {
	Name     string              `json:"name"`
	PausedAt *time.Time          `json:"paused_at"`
	Worked   bool                `json:"worked"`
	Jobs     map[queue.State]int `json:"jobs"`
	Oldest   *time.Time          `json:"oldest"`
}

// Run lists the queues.
func (cmd queueListCmd) Run(env *environment) error {
	var now time.Time
	return rowsOf("queues", func(q queue.Queue) queueJSON {
		return queueJSON{q.Name, utc(q.PausedAt), q.Worked(now), q.Depth, utc(q.Oldest)}
	}, "QUEUE\tSTATE\tWAITING\tRUNNING\tOLDEST", func(w io.Writer, q queue.Queue) {
		state, oldest := "not worked", "-"
		if q.PausedAt != nil {
			state = "paused"
		} else if q.Worked(now) {
			state = "worked"
		}
		if q.Oldest != nil {
			oldest = q.Oldest.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", q.Name, state, q.Depth[queue.StateAvailable],
			q.Depth[queue.StateRunning], oldest)
	}).all(env, cmd.JSON, func(s *app.Services) ([]queue.Queue, error) {
		now = s.DB.Now()
		return s.Queues().Queues(env.ctx)
	})
}

type queuePauseCmd struct {
	Name string `arg:"" help:"Queue, as queue list names it."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run pauses a queue.
func (cmd queuePauseCmd) Run(env *environment) error {
	return cmd.steer(env, "queue.pause", (*queue.Service).Pause)
}

type queueResumeCmd struct{ queuePauseCmd }

// Run resumes a queue.
func (cmd queueResumeCmd) Run(env *environment) error {
	return cmd.steer(env, "queue.resume", (*queue.Service).Resume)
}

func (cmd queuePauseCmd) steer(
	env *environment, action string,
	to func(s *queue.Service, ctx context.Context, tx *postgres.Tx, name string) error,
) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, err := s.Queues().Paused(env.ctx, tx, cmd.Name)
		if err != nil {
			return done{}, err
		}
		paused := action == "queue.pause"
		return did(changeEntry(action, cmd.Name, "",
			map[string]any{"paused": before}, map[string]any{"paused": paused}),
			output{map[string]any{"name": cmd.Name, "paused": paused}, func(w io.Writer) {
				word := "is resumed"
				if paused {
					word = "is paused"
				}
				fmt.Fprintf(w, "%s %s\n", cmd.Name, word)
			}}), to(s.Queues(), env.ctx, tx, cmd.Name)
	})
}
