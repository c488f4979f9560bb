package e2etest

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

	"drawbridge/internal/waittest"
	"drawbridge/web/docs/contracttest"
)

// RawRequest is one request as it was read from the socket.
type RawRequest struct {
	Line   string
	Header []string
	Body   []byte
}

// Value returns the header's value and whether the name was sent in exactly this
// spelling.
func (w RawRequest) Value(name string) (string, bool) {
	for _, line := range w.Header {
		if value, found := strings.CutPrefix(line, name+": "); found {
			return value, true
		}
	}
	return "", false
}

// Endpoint is a partner's TLS endpoint that reads raw requests from the socket
// and answers each with a status.
type Endpoint struct {
	URL      string
	CAFile   string
	Requests chan RawRequest
	// status is the status line of all further responses.
	status atomic.Value
}

// Answers changes the status of all further responses.
func (e *Endpoint) Answers(status string) { e.status.Store(status) }

// NewEndpoint starts an endpoint that answers with a status.
func NewEndpoint(t *testing.T, status string) *Endpoint {
	t.Helper()
	certificate, caFile := SelfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	e := &Endpoint{
		URL: "https://" + listener.Addr().String() + "/hook", CAFile: caFile,
		Requests: make(chan RawRequest, 4000),
	}
	e.Answers(status)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go e.answer(conn)
		}
	}()
	return e
}

// answer reads requests from a connection until it closes.
func (e *Endpoint) answer(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		request, err := readWire(reader)
		if err != nil {
			return
		}
		e.Requests <- request
		_, err = fmt.Fprintf(conn, "HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n", e.status.Load())
		if err != nil {
			return
		}
	}
}

func readWire(reader *bufio.Reader) (RawRequest, error) {
	var request RawRequest
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return RawRequest{}, err
		}
		line = strings.TrimSuffix(line, "\r\n")
		switch {
		case line == "":
			length, _ := request.Value("content-length")
			size, err := strconv.Atoi(length)
			if err != nil {
				return RawRequest{}, err
			}
			request.Body = make([]byte, size)
			_, err = io.ReadFull(reader, request.Body)
			return request, err
		case request.Line == "":
			request.Line = line
		default:
			request.Header = append(request.Header, line)
		}
	}
}

// Next waits for the next request.
func (e *Endpoint) Next(t *testing.T) RawRequest {
	t.Helper()
	request := waittest.Receive(t, "a webhook", e.Requests)
	CheckPayload(t, request)
	return request
}

// theContract is the published contract with partners.
var theContract = sync.OnceValues(func() (*contracttest.Contract, error) {
	return contracttest.Load("http://127.0.0.1:8080/api")
})

// CheckPayload compares the body of a webhook with the schema of its kind.
func CheckPayload(t *testing.T, request RawRequest) {
	t.Helper()
	promised, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := request.Value("x-drawbridge-event")
	if err := promised.CheckEvent(kind, request.Body); err != nil {
		t.Errorf("the payload of %q departs from its schema: %v\n%s", kind, err, request.Body)
	}
}

// SelfSigned makes a certificate for 127.0.0.1 and names, and writes it to a file.
func SelfSigned(t *testing.T, names ...string) (tls.Certificate, string) {
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

// WritePair puts a new self-signed pair into two files.
func WritePair(t *testing.T, folder string) (cert, key string, pair tls.Certificate) {
	t.Helper()
	pair, _ = SelfSigned(t)
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pair
}
