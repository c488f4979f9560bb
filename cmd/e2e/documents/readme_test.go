package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/cmd/e2e/e2etest"
)

// uidText matches an identifier, and changing matches text that differs from run to run.
var (
	uidText  = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	changing = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|[\d.]+(?:µs|ms|s)\b|127\.0\.0\.1:\d+|` +
		`"merchantDisbursementId":\d+|disbursement/\d+`)
)

// masked is a text without line ends and without parts that differ from run to run.
func masked(text string) string {
	text = changing.ReplaceAllString(uidText.ReplaceAllString(text, "UID"), "VALUE")
	return regexp.MustCompile(` *\n`).ReplaceAllString(strings.TrimSpace(text)+"\n", "\n")
}

// step is a command of a transcript and its output.
type step struct{ command, printed string }

// transcript returns the steps of the transcript in a document.
func transcript(t *testing.T, name string) []step {
	t.Helper()
	block := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(readDocument(t, name))
	if block == nil {
		t.Fatalf("%s has no transcript", name)
	}
	var steps []step
	for line := range strings.Lines(block[1]) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			steps = append(steps, step{command: strings.TrimSpace(command)})
		} else {
			steps[len(steps)-1].printed += line
		}
	}
	return steps
}

// TestReadmeTranscriptHappens runs the commands of the README's transcript, in order, against a
// server with new demo data, and compares their output with the transcript.
func TestReadmeTranscriptHappens(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	s := w.Serve("--demo")
	data := w.DemoData()
	client := data.Partners[0].Clients[0]
	first := slices.IndexFunc(data.Loans, func(l e2etest.DemoLoan) bool {
		return l.Stage == "first_regular"
	})
	environment := slices.Concat(w.Command().Env, []string{
		"CLIENT_ID=" + client.ID, "CLIENT_SECRET=" + client.Secret,
		"LOAN=" + data.Loans[first].UID.String(), "NO_COLOR=1", "SHELL=/bin/bash",
		"PATH=" + programsFolder(t) + ":" + os.Getenv("PATH"),
	})
	prelude, listed, ran := "api="+s.URL+"/api/v2\n", "", 0
	for _, step := range transcript(t, "README.md") {
		line, filter, filtered := strings.Cut(step.command, " | jq -c ")
		switch {
		case strings.HasPrefix(line, "api="):
			continue
		case strings.HasPrefix(line, "me="):
			prelude += line + "\n"
			continue
		}
		if listed != "" {
			line = uidText.ReplaceAllString(line, listed)
		}
		do := func() string {
			command := exec.CommandContext(t.Context(), "bash", "-c", prelude+line)
			if strings.HasPrefix(line, "drawbridge ") { // writes for a terminal
				command = exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--command", line,
					"/dev/null")
			}
			command.Dir, command.Env = w.Folder, environment
			printed, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%s ended with %v: %s", line, err, printed)
			}
			if filtered {
				return filterJSON(t, filter, printed)
			}
			return strings.ReplaceAll(string(printed), "\r", "")
		}
		ran++
		printed := do()
		for end := time.Now().Add(time.Minute); masked(printed) != masked(step.printed) &&
			!strings.Contains(line, "POST") && time.Now().Before(end); printed = do() {
			<-time.After(100 * time.Millisecond) // a delivery takes a moment
		}
		if diff := cmp.Diff(masked(step.printed), masked(printed)); diff != "" {
			t.Errorf("%s\nprints %s\n(-README +here):\n%s", step.command, printed, diff)
		}
		if strings.HasPrefix(line, "drawbridge delivery list") {
			listed = uidText.FindString(printed)
		}
	}
	if ran < 5 {
		t.Errorf("only %d commands ran", ran)
	}
}

// filterJSON applies the transcript's jq filters, since jq may not be installed.
func filterJSON(t *testing.T, filter string, text []byte) string {
	t.Helper()
	var answer struct {
		Result struct{ Data, Error json.RawMessage }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	chosen := answer.Result.Data
	switch filter {
	case ".result.data":
	case ".result.error":
		chosen = answer.Result.Error
	case "'.result.data.events[] | [.sequence, .event, .subject]'":
		var page struct {
			Events []struct {
				Sequence       int
				Event, Subject string
			}
		}
		if err := json.Unmarshal(chosen, &page); err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		for _, event := range page.Events {
			fmt.Fprintf(&lines, "[%d,%q,%q]\n", event.Sequence, event.Event, event.Subject)
		}
		return lines.String()
	default:
		t.Fatalf("the transcript filters by %s, which is not known here", filter)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, chosen); err != nil {
		t.Fatal(err)
	}
	return line.String()
}
