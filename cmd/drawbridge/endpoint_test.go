package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/web/docs/contract"
)

// wire is one request as it came over the socket.
type wire struct {
	line   string
	header []string
	body   []byte
}

// value returns the header's value and whether its name came as it is written
// here.
func (w wire) value(name string) (string, bool) {
	for _, line := range w.header {
		if value, found := strings.CutPrefix(line, name+": "); found {
			return value, true
		}
	}
	return "", false
}

// endpoint is a partner's TLS endpoint that reads raw requests from the socket
// and answers each with a status.
type endpoint struct {
	url      string
	caFile   string
	requests chan wire
	// status is the line of every answer from now on.
	status atomic.Value
}

// answers changes what the endpoint answers from now on.
func (e *endpoint) answers(status string) { e.status.Store(status) }

func newEndpoint(t *testing.T, status string) *endpoint {
	t.Helper()
	certificate, caFile := selfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	e := &endpoint{
		url: "https://" + listener.Addr().String() + "/hook", caFile: caFile,
		requests: make(chan wire, 4000),
	}
	e.answers(status)
	go e.accept(listener)
	return e
}

func (e *endpoint) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go e.answer(conn)
	}
}

// answer reads requests off one connection until it closes.
func (e *endpoint) answer(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		request, err := readWire(reader)
		if err != nil {
			return
		}
		e.requests <- request
		_, err = fmt.Fprintf(conn, "HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n", e.status.Load())
		if err != nil {
			return
		}
	}
}

func readWire(reader *bufio.Reader) (wire, error) {
	var request wire
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return wire{}, err
		}
		line = strings.TrimSuffix(line, "\r\n")
		switch {
		case line == "":
			length, _ := request.value("content-length")
			size, err := strconv.Atoi(length)
			if err != nil {
				return wire{}, err
			}
			request.body = make([]byte, size)
			_, err = io.ReadFull(reader, request.body)
			return request, err
		case request.line == "":
			request.line = line
		default:
			request.header = append(request.header, line)
		}
	}
}

// next waits for the next request.
func (e *endpoint) next(t *testing.T) wire {
	t.Helper()
	select {
	case request := <-e.requests:
		checkPayload(t, request)
		return request
	case <-time.After(time.Minute):
		t.Fatal("no webhook arrived within a minute")
		return wire{}
	}
}

// theContract is what partners were promised.
var theContract = sync.OnceValues(func() (*contract.Contract, error) {
	return contract.Load("http://127.0.0.1:8080/api")
})

// checkPayload holds the body of a webhook against the schema of its kind.
func checkPayload(t *testing.T, request wire) {
	t.Helper()
	promised, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := request.value("x-drawbridge-event")
	if err := promised.CheckEvent(kind, request.body); err != nil {
		t.Errorf("the payload of %q departs from its schema: %v\n%s", kind, err, request.body)
	}
}

func selfSigned(t *testing.T, names ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "partner"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: names,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}
