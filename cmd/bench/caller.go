package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

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

func dialAPI(ctx context.Context, address string, client partner.Issued) (*caller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
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
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", request.path, response.Status, body)
	}
	return nil
}

func (c *caller) close() error { return c.conn.Close() }
