package diagnose

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/webhook/sender"
)

// The command runs in a real shell, with a curl that prints its arguments.
func TestCurl(t *testing.T) {
	t.Parallel()
	body := `@{"title":"it's $(id) ` + "`id`" + ` \\ \"x\"","n":1}` + "\nline 2"
	headers := sender.Mask([]sender.Header{
		{Name: "host", Value: "hooks.example"},
		{Name: "content-type", Value: "application/json", Plain: true},
		{Name: "accept-encoding", Value: "gzip"},
		{Name: "x-api-key", Value: "s3cr3t"},
		{Name: "authorization", Value: "Bearer s3cr3t"},
		{Name: "x-empty", Value: ""},
		{Name: "user-agent", Value: "it's me", Plain: true},
		{Name: "content-length", Value: "10"},
	})
	command := Curl("https://hooks.example/a?b=$HOME&c='d'[1-3]", headers, []byte(body))
	if strings.Contains(command, "s3cr3t") || strings.Contains(command, sender.Masked) {
		t.Errorf("command %s", command)
	}
	script := `curl() { printf '%s\0' "$@"; }` + "\n" + command
	output, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(output), "\x00"), "\x00")
	want := []string{
		"-i", "-g", "-X", "POST", "https://hooks.example/a?b=$HOME&c='d'[1-3]",
		"-H", "content-type: application/json",
		"-H", "x-api-key: <X-API-KEY>",
		"-H", "authorization: Bearer <AUTHORIZATION>",
		"-H", "x-empty;",
		"-H", "user-agent: it's me",
		"--data-raw", body,
	}
	if !slices.Equal(got, want) {
		t.Errorf("arguments\n%q\nwant\n%q", got, want)
	}
}
