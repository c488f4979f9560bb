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

// caller is a client of the API with its own connection. It writes and reads HTTP itself:
// net/http's client would use a good part of the processor time on which the server is
// measured.
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

// errRefused is the error of a request that the API refused because it was too busy.
var errRefused = errors.New("the API is too busy")

// do sends a request and reads the response, whose status must be 200.
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

// callTask is the task of callers in a separate process.
type callTask struct {
	Address string
	// Base is prepended to the paths of the API.
	Base string
	// Client makes the requests; if it is empty, the partner's client.
	Client partner.Issued
	// Roots are the certificates to trust, in PEM; empty for plain HTTP.
	Roots []byte
	// Applications are those to request draws for, one after another.
	Applications []uuid.UUID
	// Callers is how many work at a time, each over its own connection. Together they begin
	// Rate requests a second, or as many as they can if Rate is 0.
	Callers int
	Rate    float64
	// Refusable says that the API may refuse some requests because it is too busy.
	Refusable bool
}

// findings are the results of a separate process: for each thing that it did, when that began
// and how long it took.
type findings struct {
	Began []time.Time
	Took  []time.Duration
	// Refused says of each whether the API was too busy for it.
	Refused []bool
	// Total, Processor and Busy are the fields of a timing.
	Total, Processor, Busy time.Duration
}

// callSeparately makes the requests of a task from a separate process: in this one they would
// compete for processors with the server that they measure.
func (a *apiRun) callSeparately(ctx context.Context, task callTask) (findings, error) {
	task.Address = a.address
	if task.Client.ClientID == "" {
		task.Client = a.owner.client
	}
	return runSeparately(ctx, "call", task)
}

// runSeparately runs a task of this program in a separate process.
func runSeparately(ctx context.Context, command string, task any) (findings, error) {
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

// callCmd is the command that callSeparately runs in the separate process.
type callCmd struct{}

// Run reads its task, and writes when each request began and how long it took.
func (callCmd) Run(w *world) (err error) {
	var task callTask
	if err := json.NewDecoder(w.in).Decode(&task); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	var open cleanup
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

// trusting is a pool of the certificates in a PEM text; nil if it is empty.
func trusting(text []byte) *x509.CertPool {
	if len(text) == 0 {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return roots
}
