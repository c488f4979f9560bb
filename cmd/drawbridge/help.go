package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// examples of the commands that people need first, by the command's path.
var examples = map[string]string{
	"serve": `  drawbridge serve
  drawbridge serve --roles worker
  DRAWBRIDGE_LISTEN=127.0.0.1:9000 drawbridge serve --demo`,
	"partner create":  `  drawbridge partner create --name 'Solar Group'`,
	"partner update":  `  drawbridge partner update PARTNER-UID --contact integration@solar.example`,
	"merchant create": `  drawbridge merchant create --partner UID --name 'Sunny Roofs'`,
	"client create": `  drawbridge client create --partner UID --merchant UID
  drawbridge client create --partner UID --group --json
  drawbridge client create --lender --name payments --scope funding --from 203.0.113.0/24`,
	"product create": `  drawbridge product create --code SOLAR --name Solar --term 120 ` +
		`--rate 7.99 --fee 3.75 --schedule 40,40,20 --min 1000 --max 50000`,
	"subscription create": `  drawbridge subscription create --partner UID ` +
		`--url https://partner.example/hook --auth hmac --event all
  drawbridge subscription create --partner UID --url https://partner.example/hook ` +
		`--auth none --event task.created --event task.updated --header 'x-tenant: north'`,
	"subscription update": `  drawbridge subscription update UID --url https://partner.example/new`,
	"delivery list": `  drawbridge delivery list --state failed --since 2026-11-21T00:00:00Z
  drawbridge delivery list --application UID --json`,
	"delivery resend": `  drawbridge delivery resend UID
  drawbridge delivery resend --subscription UID --state failed --since 2026-11-21T00:00:00Z ` +
		`--until 2026-11-22T00:00:00Z`,
	"email resend": `  drawbridge email resend --state failed --since 2026-11-21T00:00:00Z`,
	"user create": `  drawbridge user create --email ana@lender.example --name 'Ana Lima' ` +
		`--role operator`,
	"completion": `  source <(drawbridge completion bash)
  source <(drawbridge completion zsh)
  drawbridge completion fish > ~/.config/fish/completions/drawbridge.fish`,
}

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"Command, such as: delivery list."`
}

// Run shows the help of a command.
func (cmd helpCmd) Run(env *environment) error {
	if find(env.model.Node, cmd.Command) == nil {
		return usagef("there is no command %q", strings.Join(cmd.Command, " "))
	}
	asked := *env
	asked.args = slices.Concat(cmd.Command, []string{"--help"})
	panic(stopped(run(env.ctx, asked)))
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// completions are shell scripts that call the program for candidates, so they are never outdated.
var completions = map[string]string{
	"bash": `_drawbridge() {
  COMPREPLY=($(drawbridge complete -- "${COMP_WORDS[@]:1:COMP_CWORD}"))
}
complete -o default -F _drawbridge drawbridge
`,
	"zsh": `#compdef drawbridge
_drawbridge() {
  compadd -- $(drawbridge complete -- "${(@)words[2,CURRENT]}")
}
compdef _drawbridge drawbridge
`,
	"fish": `complete -c drawbridge -f ` +
		`-a '(drawbridge complete -- (commandline -opc)[2..] (commandline -ct))'
`,
}

// Run prints the completion script for a shell.
func (cmd completionCmd) Run(env *environment) error {
	_, err := fmt.Fprint(env.stdout, completions[cmd.Shell])
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"Words of the line; the last may be unfinished."`
}

// Run prints the commands, flags or values that complete the last word, one per line.
func (cmd completeCmd) Run(env *environment) error {
	words := cmd.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	last, node := words[len(words)-1], env.model.Node
	var before *kong.Flag
	for _, word := range words[:len(words)-1] {
		before = nil
		for _, flag := range node.Flags {
			if word == "--"+flag.Name && !flag.IsBool() {
				before = flag
			}
		}
		if next := find(node, []string{word}); next != nil {
			node = next
		}
	}
	words = following(node, before, strings.HasPrefix(last, "-"))
	words = slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, last) })
	_, err := fmt.Fprintln(env.stdout, strings.Join(words, "\n"))
	return err
}

// following lists what may follow a command, or the values of the flag before.
func following(node *kong.Node, before *kong.Flag, flags bool) []string {
	var words []string
	switch {
	case before != nil:
		return before.EnumSlice()
	case flags:
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				words = append(words, "--"+flag.Name)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				words = append(words, child.Name)
			}
		}
		for _, positional := range node.Positional {
			words = append(words, positional.EnumSlice()...)
		}
	}
	return words
}

// jsonFlag asks for a document in place of text for people.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// listFlags page a list.
type listFlags struct {
	Limit  int    `default:"50" help:"Number of entries, at most 500."`
	Cursor string `help:"Cursor of the next page, as printed by the previous one." placeholder:"CURSOR"`
	jsonFlag
}

// refuse keeps the first error of the command line. The command then ends before it opens
// the database, so functions that read a flag do not return an error.
func (env *environment) refuse(err error) {
	if env.usageErr == nil {
		env.usageErr = err
	}
}

func (env *environment) refusef(format string, args ...any) { env.refuse(usagef(format, args...)) }

func (env *environment) uid(what, text string) uuid.UUID {
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != len(uuid.Nil.String()) {
		env.refusef("%s is %q, which is not a UUID", what, text)
	}
	return uid
}

func (env *environment) optionalUID(what, text string) uuid.UUID {
	if text == "" {
		return uuid.Nil
	}
	uid := env.uid(what, text)
	if uid == uuid.Nil { // which filters take for an absent flag
		env.refusef("%s is %q, which is the nil UUID", what, text)
	}
	return uid
}

// uids parses several identifiers; it returns nil for no texts.
func (env *environment) uids(what string, texts []string) (uids []uuid.UUID) {
	for _, text := range texts {
		uids = append(uids, env.uid(what, text))
	}
	return uids
}

// time reads an RFC 3339 time or a date (UTC); empty is the zero time.
func (env *environment) time(flag, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		at, ok := postgres.Storable(at)
		if !ok {
			env.refusef("%s is %q; it must be after 0001-01-01T00:00:00Z and before "+
				"10000-01-01T00:00:00Z", flag, text)
		}
		return at
	}
	env.refusef("%s is %q; it must be a time such as 2026-11-21T09:30:00Z", flag, text)
	return time.Time{}
}

// readSecret reads a short text from the standard input.
func (env *environment) readSecret(what string) string {
	if env.usageErr != nil {
		return ""
	}
	const longest = 4096
	text, err := env.readInput(func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(env.stdin, longest))
	})
	if err != nil {
		env.refuse(fmt.Errorf("reading the %s: %w", what, err))
	}
	return string(text)
}

// readInput runs read, which reads the standard input, and returns at once when the command is
// stopped: a signal does not end a read.
func (env *environment) readInput(read func() ([]byte, error)) ([]byte, error) {
	type input struct {
		text []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		text, err := read()
		done <- input{text, err}
	}()
	select {
	case <-env.ctx.Done():
		return nil, context.Cause(env.ctx)
	case got := <-done:
		return got.text, got.err
	}
}

// secretFlag is the secret given by a flag, the zero value if there is none; - reads it
// from the standard input, without its line end.
func (env *environment) secretFlag(text string) secret.String {
	if text != "-" {
		return secret.New(text)
	}
	line := strings.TrimSuffix(strings.TrimSuffix(env.readSecret("secret"), "\n"), "\r")
	if line == "" {
		env.refusef("--secret - needs a secret on the standard input")
	}
	return secret.New(line)
}

// webAddress checks a URL that this machine will send requests to.
func (env *environment) webAddress(flag, text string) {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		env.refusef("%s is %q; it must be an address such as http://127.0.0.1:8080/api", flag, text)
	}
}

// eventKind parses an event kind; it is empty for an empty text.
func (env *environment) eventKind(flag, text string) lending.EventKind {
	kind := lending.EventKind(text)
	if text != "" && !kind.IsKnown() {
		env.refusef("%s is %q, which is not an event kind", flag, text)
	}
	return kind
}

// chosen makes sure that the subjects of a command are given in exactly one of two ways: by
// name or by filters.
func (env *environment) chosen(plural string, named, filtered bool, flags string) {
	switch {
	case !named && !filtered:
		env.refusef("name the %s to re-send, or choose them with %s", plural, flags)
	case named && filtered:
		env.refusef("name %s or choose them with flags, not both", plural)
	}
}

// quotedField matches a field name in a refusal. Other quoted text, such as the characters
// of a code, does not have this form.
var quotedField = regexp.MustCompile(`"([a-z]+)"`)

// byFlags rewrites a use case's refusal, whose fields are named like the command's flags, as a
// usage error about these flags. A refusal because a value is already taken is not a usage
// error. Other errors are returned unchanged.
func byFlags(err error) error {
	refusal, ok := errors.AsType[*lending.Error](err)
	if !ok || refusal.Code != lending.CodeValidation {
		return err
	}
	var lines []string
	for _, problem := range refusal.Details {
		lines = append(lines, quotedField.ReplaceAllString(problem.Message, "--$1"))
	}
	text := strings.Join(lines, "; ")
	if lending.IsTaken(err) {
		return errors.New(text)
	}
	return usageError{text}
}
