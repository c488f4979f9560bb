package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
)

// program is Postgres and the real program in processes of their own.
type program struct {
	folder  string
	outside *outside
	server  *pgserver.Server
	db      *postgres.DB
	process *exec.Cmd
	// url is where the program serves.
	url  string
	demo demo
}

// demo is what is used of the demo data.
type demo struct {
	Users []struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	} `json:"users"`
	Partners []struct {
		UID     string `json:"partner_uid"`
		Clients []struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		} `json:"clients"`
	} `json:"partners"`
	Products []struct {
		UID  string `json:"product_uid"`
		Code string `json:"code"`
	} `json:"products"`
}

// startProgram builds the program, starts it on a new database, and prepares its
// partner: a rate that nothing reaches, and a subscription for each endpoint.
func startProgram(
	ctx context.Context, o options, outside *outside, say func(string, ...any),
) (_ *program, err error) {
	folder, err := os.MkdirTemp(o.dir, "drawbridge-soak-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the run: %w", err)
	}
	p := &program{folder: folder, outside: outside}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop())
		}
	}()
	//nolint:gosec // G302: the server runs as another user than root
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening the run's folder: %w", err)
	}
	p.server, err = pgserver.Start(ctx, pgserver.Options{
		Dir: folder, Progress: func(line string) { say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	if p.db, err = postgres.Open(ctx, p.server.URL()); err != nil {
		return nil, err
	}
	say("building the program")
	output, err := exec.CommandContext(ctx, "go", "build", "-o", p.binary(),
		"drawbridge/cmd/drawbridge").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("building the program: %w\n%s", err, output)
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	if err := p.serve(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *program) binary() string { return filepath.Join(p.folder, "drawbridge") }

// subscriptions are the flags of each endpoint's.
func (p *program) subscriptions() [][]string {
	return [][]string{
		{"--url", p.outside.url + "/good", "--event", "all"},
		{"--url", p.outside.url + "/slow", "--event", "task.created"},
		{"--url", p.outside.url + "/flaky", "--event", "all"},
		{"--url", p.outside.url + "/dead", "--event", "disbursement.funding.settled"},
	}
}

// prepare loads the demo data and what the load needs beside it.
func (p *program) prepare(ctx context.Context) error {
	if _, err := p.run(ctx, "migrate", "up"); err != nil {
		return err
	}
	output, err := p.run(ctx, "demo", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(output, &p.demo); err != nil {
		return fmt.Errorf("reading the demo data: %w", err)
	}
	if len(p.demo.Users) == 0 || len(p.demo.Partners) == 0 || len(p.demo.Products) == 0 {
		return errors.New("the demo data has no user, partner or product")
	}
	client := p.demo.Partners[0].Clients[0].ID
	_, err = p.run(ctx, "client", "rate", client, "--rate", "50000", "--burst", "100000")
	for _, flags := range p.subscriptions() {
		_, subscribeErr := p.run(ctx, append([]string{
			"subscription", "create", "--partner", p.demo.Partners[0].UID, "--auth", "hmac",
		}, flags...)...)
		err = errors.Join(err, subscribeErr)
	}
	return err
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.binary(), args...)
	command.Dir = p.folder
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "DATABASE_URL=" + p.server.URL(),
		"DRAWBRIDGE_LISTEN=127.0.0.1:0", "DRAWBRIDGE_SMTP_URL=" + p.outside.smtp,
		"DRAWBRIDGE_WEBHOOK_RETRY=2s,5s",
	}
	return command
}

// run runs a command of the program to its end.
func (p *program) run(ctx context.Context, args ...string) ([]byte, error) {
	command := p.command(ctx, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return output, nil
}

// serve starts the service and waits for its ready line.
func (p *program) serve(ctx context.Context) error {
	p.process = p.command(context.WithoutCancel(ctx), "serve") // stop ends it
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("reading from the program: %w", err)
	}
	if err := p.process.Start(); err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	origin, ready := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ready {
		return fmt.Errorf("the program printed %q: %w", line, err)
	}
	p.url = origin
	return nil
}

// drainTime is how long what the peak left may take to be delivered.
const drainTime = 10 * time.Minute

// drain waits until no job waits and no delivery is open.
func (p *program) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for {
		var open int
		err := p.db.GetContext(ctx, &open, `
			SELECT (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying'))
			     + (SELECT count(*) FROM emails WHERE state = 'queued')`)
		if err != nil {
			return fmt.Errorf("waiting for the deliveries of the peak: %w", err)
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d deliveries of the peak are still open: %w", open, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// machine describes where the run took place.
func (p *program) machine(ctx context.Context) string {
	var version string
	if err := p.db.GetContext(ctx, &version, `SHOW server_version`); err != nil {
		version = "unknown"
	}
	return fmt.Sprintf("%s, %d cores, %s, Postgres %s beside it, fsync on",
		time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.GOMAXPROCS(0), runtime.Version(),
		version)
}

// stop ends what runs and removes the data.
func (p *program) stop() error {
	var errs []error
	if p.process != nil && p.process.Process != nil {
		errs = append(errs, p.process.Process.Signal(syscall.SIGTERM), p.process.Wait())
	}
	if p.db != nil {
		errs = append(errs, p.db.Close())
	}
	if p.server != nil {
		data := p.server.Folder()
		errs = append(errs, p.server.Stop(), os.RemoveAll(data))
	}
	return errors.Join(append(errs, os.RemoveAll(p.folder))...)
}
