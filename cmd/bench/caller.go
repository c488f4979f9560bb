package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/partner"
)

// call is a request to the API.
type call struct {
	method, path, body string
	// key is the Idempotency-Key, empty for none.
	key string
}

// caller is a client of the API with a connection of its own. It writes and
// reads HTTP itself: net/http's client would take a good part of the processor
// that the server is to be measured on.
type caller struct {
	conn        net.Conn
	reader      *bufio.Reader
	credentials string
}

// dialAPI connects to the API, over TLS if there are roots to trust.
func dialAPI(
	ctx context.Context, address string, client partner.Issued, roots *x509.CertPool,
) (*caller, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = new(net.Dialer)
	if roots != nil {
		dialer = &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API: %w", err)
	}
	return &caller{
		conn: conn, reader: bufio.NewReader(conn),
		credentials: " HTTP/1.1\r\nhost: " + address +
			"\r\nx-service-client-id: " + client.ClientID +
			"\r\nx-service-client-secret: " + client.Secret + "\r\n",
	}, nil
}

// errRefused is what came of a call that the API was too busy for.
var errRefused = errors.New("the API is too busy")

// do sends a call and reads the answer, which must be 200.
func (c *caller) do(request call) error {
	text := make([]byte, 0, 512)
	text = append(text, request.method+" "+request.path+c.credentials...)
	if request.key != "" {
		text = append(text, "idempotency-key: "+request.key+"\r\n"...)
	}
	if request.body != "" {
		text = append(text, "content-type: application/json\r\n"...)
	}
	text = append(text, "content-length: "+strconv.Itoa(len(request.body))+"\r\n\r\n"...)
	if _, err := c.conn.Write(append(text, request.body...)); err != nil {
		return fmt.Errorf("calling %s: %w", request.path, err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", request.path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", request.path, err)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return fmt.Errorf("%s: %w: %s", request.path, errRefused, body)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", request.path, response.Status, body)
	}
	return nil
}

func (c *caller) close() error { return c.conn.Close() }

// callTask is what callers in a process of their own do.
type callTask struct {
	Address string
	// Base comes before the paths of the API.
	Base string
	// Client makes the calls; none for that of the partner.
	Client partner.Issued
	// Roots are the certificates to trust, in PEM; none to call without TLS.
	Roots []byte
	// Applications are drawn on one after the other.
	Applications []uuid.UUID
	// Callers are at work at a time, each over a connection of its own, and begin
	// Rate calls a second together, 0 for as many as they can.
	Callers int
	Rate    float64
	// Refusable tells that the API may be too busy for some.
	Refusable bool
}

// findings are what a process of its own tells of what it did, thing by thing: when it
// began and how long it took.
type findings struct {
	Began []time.Time
	Took  []time.Duration
	// Refused are those for which the API was too busy.
	Refused []bool
	// Total, Processor and Busy are those of a timing.
	Total, Processor, Busy time.Duration
}

// callOutside makes the calls of a task from a process of its own: from here, they
// would wait for the processors among what they are to measure.
func (a *apiRun) callOutside(ctx context.Context, task callTask) (findings, error) {
	task.Address = a.address
	if task.Client.ClientID == "" {
		task.Client = a.owner.client
	}
	return apart(ctx, "call", task)
}

// apart has this program do a task in a process of its own.
func apart(ctx context.Context, command string, task any) (findings, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return findings{}, fmt.Errorf("writing the task: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return findings{}, fmt.Errorf("finding this program: %w", err)
	}
	var answer, complaint bytes.Buffer
	process := exec.CommandContext(ctx, self, command)
	process.Stdin, process.Stdout, process.Stderr = bytes.NewReader(text), &answer, &complaint
	if err := process.Run(); err != nil {
		return findings{}, fmt.Errorf("running %s in a process of its own: %w: %s",
			command, err, &complaint)
	}
	var found findings
	if err := json.Unmarshal(answer.Bytes(), &found); err != nil {
		return findings{}, fmt.Errorf("reading what %s found: %w", command, err)
	}
	return found, nil
}

// callCmd is the other side of callOutside.
type callCmd struct{}

// Run reads its task and writes when each call began and how long it took.
func (callCmd) Run(w *world) (err error) {
	var task callTask
	if err := json.NewDecoder(w.in).Decode(&task); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	var open ends
	defer open.run(&err)
	free := make(chan *caller, task.Callers)
	for range task.Callers {
		made, err := dialAPI(w.ctx, task.Address, task.Client, trusting(task.Roots))
		if err != nil {
			return err
		}
		open.add(made.close)
		free <- made
	}
	n := len(task.Applications)
	found := findings{
		Began: make([]time.Time, n), Took: make([]time.Duration, n), Refused: make([]bool, n),
	}
	err = pace{rate: task.Rate, most: task.Callers}.run(w.ctx, n, func(i int, _ time.Time) error {
		made := <-free
		defer func() { free <- made }()
		draw := drawCall(tenant{}, task.Applications[i])
		draw.path = task.Base + draw.path
		found.Began[i] = time.Now()
		err := made.do(draw)
		found.Took[i] = time.Since(found.Began[i])
		if found.Refused[i] = task.Refusable && errors.Is(err, errRefused); found.Refused[i] {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(w.out).Encode(found)
}

// trusting are the certificates of a PEM text; nil for none.
func trusting(text []byte) *x509.CertPool {
	if len(text) == 0 {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return roots
}
