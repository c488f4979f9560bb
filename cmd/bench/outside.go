package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/partner"
)

// outsideCommand is what this program is started with to be a caller.
const outsideCommand = "call-from-outside"

// outsideTask is what a caller in a process of its own does.
type outsideTask struct {
	Address string
	Client  partner.Issued
	// Applications are drawn on one after the other.
	Applications []uuid.UUID
}

// paced draws on one application after the other at a steady rate, over one
// connection, and tells how long each call took. The caller is a process of its own:
// here it would wait for the processors among what it is to measure.
func (a *apiRun) paced(ctx context.Context, uids []uuid.UUID) (timing, error) {
	task, err := json.Marshal(outsideTask{
		Address: a.address, Client: a.owner.client, Applications: uids,
	})
	if err != nil {
		return timing{}, fmt.Errorf("writing the caller's task: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return timing{}, fmt.Errorf("finding this program: %w", err)
	}
	var answer, complaint bytes.Buffer
	caller := exec.CommandContext(ctx, self, outsideCommand)
	caller.Stdin, caller.Stdout, caller.Stderr = bytes.NewReader(task), &answer, &complaint
	if err := caller.Run(); err != nil {
		return timing{}, fmt.Errorf("calling the API from outside: %w: %s", err, &complaint)
	}
	var took timing
	if err := json.Unmarshal(answer.Bytes(), &took.each); err != nil {
		return timing{}, fmt.Errorf("reading how long the calls took: %w", err)
	}
	return took, nil
}

// isOutside tells whether the arguments, program included, are those of a caller.
func isOutside(args []string) bool { return len(args) == 2 && args[1] == outsideCommand }

// callFromOutside is the other side of paced: it reads its task and writes how long
// each call took, in nanoseconds.
func callFromOutside(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	var task outsideTask
	if err := json.NewDecoder(in).Decode(&task); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	caller, err := dialAPI(ctx, task.Address, task.Client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, caller.close()) }()
	draw := operations[0]
	ticker := time.NewTicker(time.Second / calledRate)
	defer ticker.Stop()
	var each []time.Duration
	for _, uid := range task.Applications {
		began := time.Now()
		if err := caller.do(draw.request(nil, uid)); err != nil {
			return err
		}
		each = append(each, time.Since(began))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return json.NewEncoder(out).Encode(each)
}
