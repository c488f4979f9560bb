package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
)

// healthTimeout limits the request to the process.
const healthTimeout = 5 * time.Second

type healthCmd struct {
	Ready bool `help:"Check whether the process is ready to serve, not only whether it is alive."`
	JSON  bool `name:"json" help:"Print one JSON document."`
}

// Help describes the purpose of the command.
func (healthCmd) Help() string {
	return "Requests /healthz, or with --ready /readyz, from the process that listens on " +
		"DRAWBRIDGE_LISTEN on this machine, and exits with 1 unless it answers 200. It is for the " +
		"health check of a container that has no other program to send the request."
}

// Run makes the request and prints the response.
func (cmd healthCmd) Run(env *environment) error {
	settings, err := env.config()
	if err != nil {
		return err
	}
	path := "/healthz"
	if cmd.Ready {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(env.ctx, healthTimeout)
	defer cancel()
	status, text, err := askLocal(ctx, settings, path)
	if err != nil {
		return fmt.Errorf("requesting %s from the process: %w", path, err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s answers %d: %s", path, status, text)
	}
	return env.print(cmd.JSON, output{
		map[string]any{"path": path, "status": status, "answer": text},
		func(w io.Writer) { fmt.Fprintln(w, text) },
	})
}

// askLocal sends one request to the process that listens on this machine. Its certificate is for
// the name that browsers use, so it is not verified here: the response contains no secret and
// nothing relies on it.
func askLocal(ctx context.Context, settings config.Config, path string) (int, string, error) {
	host, port, err := net.SplitHostPort(settings.Listen)
	if err != nil {
		return 0, "", fmt.Errorf("reading DRAWBRIDGE_LISTEN: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		app.Scheme(settings)+net.JoinHostPort(host, port)+path, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	local := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	if len(settings.TLSAutocert) > 0 {
		local.ServerName = settings.TLSAutocert[0]
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: local}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	return answer.StatusCode, strings.TrimSpace(string(text)), err
}
