package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostileEndpoint returns payloads in every part of a response that can hold them, varying
// each time, and all of them in each body.
func hostileEndpoint(t *testing.T, payloads []string) string {
	t.Helper()
	var count atomic.Int64
	body := strings.Join(payloads, "\n")
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(count.Add(1))
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return // the sender has disconnected
		}
		defer conn.Close()
		one := strings.NewReplacer("\r", "", "\n", "").Replace(payloads[n%len(payloads)])
		line := []string{"500 " + one, "302 Found", "503 Busy", "404 " + one}[n%4]
		fmt.Fprintf(buffer, "HTTP/1.1 %s\r\ncontent-type: text/html\r\nlocation: %s\r\n"+
			"server: %[2]s\r\nset-cookie: %[2]s\r\nx-said: <script>ran()</script>%[2]s\r\n"+
			"content-length: %d\r\nconnection: close\r\n\r\n%s", line, one, len(body), body)
		_ = buffer.Flush() // the sender may have disconnected
	}))
	t.Cleanup(e.Close)
	return e.URL
}

// impostor is an endpoint whose certificate has payloads in all its names.
func impostor(t *testing.T, lines []string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	name := pkix.Name{CommonName: lines[0], Organization: []string{lines[1]}}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: name, Issuer: name, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{
			"<script>ran()</script>.example", `"><img id=intruder onerror=ran()>`,
		},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	e := httptest.NewUnstartedServer(http.NotFoundHandler())
	e.TLS = &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{der}, PrivateKey: key,
	}}}
	e.StartTLS()
	t.Cleanup(e.Close)
	return e.URL
}

// hostileMailServer refuses every recipient with a payload.
func hostileMailServer(t *testing.T, lines []string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			go refuseMail(conn, lines[n%len(lines)])
		}
	}()
	return "smtp://" + listener.Addr().String()
}

// refuseMail speaks just enough SMTP to refuse a recipient.
func refuseMail(conn net.Conn, saying string) {
	defer conn.Close()
	text := textproto.NewConn(conn)
	_ = text.PrintfLine("220 mail.example") // a disconnected client is noticed when reading
	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}
		answer := "250 ok"
		switch verb, _, _ := strings.Cut(strings.ToUpper(line), " "); verb {
		case "RCPT":
			answer = "550 5.1.1 " + saying
		case "QUIT":
			answer = "221 bye"
		}
		if err := text.PrintfLine("%s", answer); err != nil {
			return
		}
	}
}
