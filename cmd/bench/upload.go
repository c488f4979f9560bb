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
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// uploadFiles of uploadFileSize are the most that one request may bring.
	uploadFiles    = 5
	uploadFileSize = 10 << 20
)

// upload measures by how much the largest upload makes the memory of the real
// program peak, beside what the program takes when it is idle.
func (b *bench) upload(ctx context.Context) (err error) {
	b.say("upload: building the program")
	p, err := b.program(ctx)
	if err != nil {
		return err
	}
	demo, err := p.demo(ctx)
	if err != nil {
		return err
	}
	if err := p.serve(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	// A first request, so that the idle program is one that has served.
	if err := p.request(ctx, demo, http.MethodGet, "", nil); err != nil {
		return err
	}
	idle, err := p.peak()
	if err != nil {
		return err
	}
	b.say("upload: sending %d files of %d MiB", uploadFiles, uploadFileSize>>20)
	if err := p.uploadFiles(ctx, demo); err != nil {
		return err
	}
	after, err := p.peak()
	if err != nil {
		return err
	}
	b.report.add(row{
		Section: "memory", Unit: "MiB", Value: after - idle, Floor: idle,
		Name:      fmt.Sprintf("grown by an upload of %d MiB", uploadFiles*uploadFileSize>>20),
		FloorName: "the idle program", Aim: "< 32 MiB",
	})
	return nil
}

// program is the real program in a process of its own.
type program struct {
	binary, folder, url string
	origin              string
	process             *exec.Cmd
}

func (p *program) build(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "go", "build", "-o", p.binary,
		"drawbridge/cmd/drawbridge").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the program: %w\n%s", err, output)
	}
	return nil
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.binary, args...)
	command.Dir = p.folder
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "DATABASE_URL=" + p.url,
		"DRAWBRIDGE_LISTEN=127.0.0.1:0",
	}
	return command
}

// demoData is what is used of the demo data.
type demoData struct {
	Partners []struct {
		Clients []struct {
			ID     string `json:"client_id"`
			Secret string `json:"client_secret"`
		} `json:"clients"`
	} `json:"partners"`
	Loans []struct {
		UID string `json:"loan_application_uid"`
	} `json:"loans"`
	Users []struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	} `json:"users"`
}

func (p *program) demo(ctx context.Context) (demoData, error) {
	var data demoData
	var stderr bytes.Buffer
	command := p.command(ctx, "demo", "--json")
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return data, fmt.Errorf("loading the demo data: %w\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(output, &data); err != nil {
		return data, fmt.Errorf("reading the demo data: %w", err)
	}
	if len(data.Partners) == 0 || len(data.Partners[0].Clients) == 0 || len(data.Loans) == 0 ||
		len(data.Users) == 0 {
		return data, errors.New("the demo data has no client, no loan or no user")
	}
	return data, nil
}

// serve starts the service and waits for the line that says it is ready.
func (p *program) serve(ctx context.Context) error {
	p.process = p.command(ctx, "serve")
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

// body is a multipart body that is made while it is sent.
type body struct {
	io.Reader

	contentType string
}

// request calls an operation of the first demo loan, which must succeed.
func (p *program) request(
	ctx context.Context, demo demoData, method, suffix string, content *body,
) error {
	url := p.origin + "/api/v2/loan/" + demo.Loans[0].UID + suffix
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	if content != nil {
		request.Body, request.ContentLength = io.NopCloser(content), -1
		request.Header.Set("content-type", content.contentType)
	}
	client := demo.Partners[0].Clients[0]
	request.Header.Set("x-service-client-id", client.ID)
	request.Header.Set("x-service-client-secret", client.Secret)
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return fmt.Errorf("calling the program: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the program's answer: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the program answered %s: %s", response.Status, answer)
	}
	return nil
}

// uploadFiles sends the largest completion certificate there may be.
func (p *program) uploadFiles(ctx context.Context, demo demoData) error {
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() {
		writer.CloseWithError(writeFiles(form))
	}()
	defer reader.Close()
	return p.request(ctx, demo, http.MethodPost, "/completion-cert-upload",
		&body{Reader: reader, contentType: form.FormDataContentType()})
}

func writeFiles(form *multipart.Writer) error {
	content := pdf(uploadFileSize)
	for i := range uploadFiles {
		part, err := form.CreateFormFile("files", fmt.Sprintf("certificate-%d.pdf", i+1))
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	return form.Close()
}

// pdf is a document of a size, most of which is a stream that no reader minds.
func pdf(size int) []byte {
	const head, tail = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%", "\n%%EOF\n"
	filling := bytes.Repeat([]byte{'x'}, size-len(head)-len(tail))
	return append(append([]byte(head), filling...), tail...)
}

// peak is the most memory that the process ever had, in MiB.
func (p *program) peak() (float64, error) {
	path := fmt.Sprintf("/proc/%d/status", p.process.Process.Pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading the program's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		value, found := strings.CutPrefix(line, "VmHWM:")
		if !found {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the program's memory: %w", err)
		}
		return kib / 1024, nil
	}
	return 0, fmt.Errorf("%s has no line VmHWM", path)
}
