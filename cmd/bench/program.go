package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"drawbridge/internal/demo"
	"drawbridge/internal/lists"
)

// program is the real program in a separate process, with the demo data.
type program struct {
	binary, folder, url string
	// settings are added to its environment.
	settings []string
	demo     demo.Data
	api      *http.Client
	origin   string
	process  *exec.Cmd
}

// newProgram prepares the real program with a new database, the demo data and a folder to run
// in. It builds the program the first time.
func newProgram(ctx context.Context, c *cluster, settings ...string) (*program, error) {
	url, err := c.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	p, err := buildProgram(ctx, c, url, settings...)
	if err != nil {
		return nil, err
	}
	output, err := p.run(ctx, "demo", "--json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(output, &p.demo); err != nil {
		return nil, fmt.Errorf("reading the demo data: %w", err)
	}
	return p, nil
}

// buildProgram builds the program if necessary, and gives it a database and a folder to run in.
func buildProgram(
	ctx context.Context, c *cluster, url string, settings ...string,
) (*program, error) {
	p := &program{
		binary: filepath.Join(c.folder, "drawbridge"), url: url, settings: settings,
		folder: filepath.Join(c.folder, fmt.Sprintf("program_%d", c.made)),
		api: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: time.Minute,
		},
	}
	if err := os.MkdirAll(p.folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the program's folder: %w", err)
	}
	if _, err := os.Stat(p.binary); err != nil {
		output, err := exec.CommandContext(ctx, "go", "build", "-o", p.binary,
			"drawbridge/cmd/drawbridge").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("building the program: %w\n%s", err, output)
		}
	}
	return p, nil
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.binary, args...)
	command.Dir = p.folder
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "DATABASE_URL=" + p.url,
		"DRAWBRIDGE_LISTEN=127.0.0.1:0",
	}, p.settings...)
	return command
}

// run runs a command of the program to its end and returns what it printed.
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

// serve starts the service and waits for the line that says it is ready.
func (p *program) serve(ctx context.Context) error {
	p.process = p.command(context.WithoutCancel(ctx), "serve") // stop kills it
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
		return errors.Join(fmt.Errorf("the program printed %q: %w", line, err), p.stop())
	}
	p.origin = origin
	return nil
}

func (p *program) stop() error {
	if err := p.process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the program: %w", err)
	}
	if err := p.process.Wait(); err != nil {
		return fmt.Errorf("the program ended badly: %w", err)
	}
	return nil
}

const mebi = 1 << 20

// memory is the resident memory of the process, and its peak so far, in MiB.
func (p *program) memory() (resident, peak float64, err error) {
	process, err := procfs.NewProc(p.process.Process.Pid)
	if err != nil {
		return 0, 0, fmt.Errorf("looking for the program: %w", err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the program's memory: %w", err)
	}
	return float64(status.VmRSS) / mebi, float64(status.VmHWM) / mebi, nil
}

// signIn returns a console session of the last demo user.
func (p *program) signIn(ctx context.Context) (*lists.Visitor, error) {
	user := p.demo.Users[len(p.demo.Users)-1]
	return lists.SignIn(ctx, p.origin, user.Email, user.Password)
}

// request is an API request of the demo partner's client.
type request struct {
	method, path string
	// key is the Idempotency-Key, empty for none.
	key  string
	body io.Reader
	// kind is the content type of the body.
	kind string
}

// identifiers are removed from error texts, so that failures of one kind are counted
// together.
var identifiers = regexp.MustCompile(`/[0-9a-f-]*\d[0-9a-f-]*(/|$)`)

// call makes a request, which must succeed, and decodes the data of the response into a non-nil
// into.
func (p *program) call(ctx context.Context, r request, into any) error {
	what := r.method + " " + identifiers.ReplaceAllString(r.path, "/ID$1")
	made, err := http.NewRequestWithContext(ctx, r.method, p.origin+"/api/v2"+r.path, r.body)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	client := p.demo.Partners[0].Clients[0]
	for name, value := range map[string]string{
		"x-service-client-id": client.ID, "x-service-client-secret": client.Secret,
		"Content-Type": r.kind, "Idempotency-Key": r.key,
	} {
		if value != "" {
			made.Header.Set(name, value)
		}
	}
	response, err := p.api.Do(made)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", what, err)
	}
	failed := response.StatusCode >= http.StatusMultipleChoices
	if into == nil && !failed {
		return nil
	}
	var envelope struct {
		Result struct {
			Data  json.RawMessage `json:"data"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("reading the answer %d of %s: %w", response.StatusCode, what, err)
	}
	if failed {
		// Without its timestamp, so that responses of one kind are counted together.
		return fmt.Errorf("%s was answered %d %s",
			what, response.StatusCode, envelope.Result.Error.Message)
	}
	return json.Unmarshal(envelope.Result.Data, into)
}

// certificates returns an upload of count documents of a size, and its content type.
func certificates(count, size int) (body []byte, kind string, err error) {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	// Most of a document is a comment that readers ignore.
	const head, tail = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%", "\n%%EOF\n"
	content := []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
	for i := range count {
		part, err := form.CreateFormFile("files", fmt.Sprintf("certificate-%d.pdf", i+1))
		if err != nil {
			return nil, "", err
		}
		if _, err := part.Write(content); err != nil {
			return nil, "", err
		}
	}
	err = form.Close() // writes the closing boundary
	return text.Bytes(), form.FormDataContentType(), err
}
