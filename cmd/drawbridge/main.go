// Command drawbridge is the whole service in one binary: the partner API, the
// operator console, the workers, and the commands that set them up.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"drawbridge/internal/config"
	"drawbridge/internal/lending"
)

// version is set by the linker when the program is built.
var version = "dev"

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup sets it to be ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	status := run(ctx, environment{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
		names:  names,
	})
	stop()
	os.Exit(status)
}

// The exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// grammar is every command with its flags.
type grammar struct {
	Serve       serveCmd       `cmd:"" group:"service" help:"Run the API, the console and the workers."`
	Migrate     migrateCmd     `cmd:"" group:"service" help:"Migrate the database schema up or down, or show its migrations."`
	Demo        demoCmd        `cmd:"" group:"service" help:"Load the demo data set and print it."`
	Doctor      doctorCmd      `cmd:"" group:"service" help:"Check what the service depends on, and say how to fix problems."`
	Health      healthCmd      `cmd:"" group:"service" help:"Check whether the process on this machine is alive, or ready to serve."`
	Config      configCmd      `cmd:"" group:"service" help:"Print the effective settings, secrets masked."`
	Secrets     secretsCmd     `cmd:"" group:"service" help:"The keys that encrypt secrets at rest."`
	Environment environmentCmd `cmd:"" group:"service" help:"Show or change which environment the database belongs to."`
	Queue       queueCmd       `cmd:"" group:"service" help:"The job queues: list, pause and resume them."`
	Backup      backupCmd      `cmd:"" group:"service" help:"The record of the last backup."`
	Restore     restoreCmd     `cmd:"" group:"service" help:"What a database that was restored from a backup may send."`

	Partner  partnerCmd  `cmd:"" group:"partners" help:"Partner organisations."`
	Merchant merchantCmd `cmd:"" group:"partners" help:"Merchants of a partner."`
	Client   clientCmd   `cmd:"" group:"partners" help:"API credentials of partners and of the lender's own systems."`
	Product  productCmd  `cmd:"" group:"partners" help:"Loan products."`

	Draw drawCmd `cmd:"" group:"partners" help:"Draws whose money is under way."`

	Subscription subscriptionCmd `cmd:"" group:"messages" help:"Webhook subscriptions."`
	Event        eventCmd        `cmd:"" group:"messages" help:"Events, and why a subscription did or did not get them."`
	Listen       listenCmd       `cmd:"" group:"messages" help:"Follow a server's events and post them to an address of this machine."`
	Delivery     deliveryCmd     `cmd:"" group:"messages" help:"The webhook delivery log and re-sending."`
	Bulk         bulkCmd         `cmd:"" group:"messages" help:"Bulk re-sends: many deliveries sent again, planned and paced."`
	Email        emailCmd        `cmd:"" group:"messages" help:"The e-mail log and re-sending."`

	User        userCmd        `cmd:"" group:"records" help:"Users of the console."`
	Application applicationCmd `cmd:"" group:"records" help:"Legal holds on applications."`
	Statement   statementCmd   `cmd:"" group:"records" help:"Daily statements of merchants, and the keys that sign them."`
	Audit       auditCmd       `cmd:"" group:"records" help:"The audit log: who changed what."`
	Retention   retentionCmd   `cmd:"" group:"records" help:"How long records are kept, and their removal."`

	Help       helpCmd       `cmd:"" group:"tool" help:"Show what a command does and its flags."`
	Completion completionCmd `cmd:"" group:"tool" help:"Print the completion script of the command line for a shell."`
	Version    versionCmd    `cmd:"" group:"tool" help:"Print the version."`

	Seed     seedCmd     `cmd:"" hidden:"" help:"Fill a development database with deliveries."`
	Complete completeCmd `cmd:"" name:"complete" hidden:"" help:"Print what may come next on a command line."`
}

// groups are the sections of the command list, in order.
var groups = []kong.Group{
	{Key: "service", Title: "Run the service"},
	{Key: "partners", Title: "Partners and products"},
	{Key: "messages", Title: "Webhooks and e-mails"},
	{Key: "records", Title: "Users and records"},
	{Key: "tool", Title: "This tool"},
}

// stopped ends a command line early with a status, after --help.
type stopped int

// usageError is an error of the command line that the parser could not detect.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// run executes one command line and returns its exit status.
func run(ctx context.Context, env environment) (status int) {
	defer func() {
		switch early := recover().(type) {
		case nil:
		case stopped:
			status = int(early)
		default:
			panic(early)
		}
	}()
	switch {
	case len(env.args) == 0:
		env.args = []string{"--help"}
	case slices.Equal(env.args, []string{"--version"}):
		env.args = []string{"version"}
	}
	parser := newParser(env)
	command, err := parser.Parse(env.args)
	if err != nil {
		return env.unparsed(err)
	}
	if flag := emptyFlag(command); flag != "" {
		env.complain("--%s is empty (see %s --help)", flag, command.Selected().FullPath())
		return exitUsage
	}
	env.ctx, env.model = ctx, parser.Model
	if err := command.Run(&env); err != nil {
		if ctx.Err() != nil { // or the words of the database about it read like its own failure
			err = fmt.Errorf("stopped by a signal: %w", err)
		}
		env.complain("%s", lending.OneLine(err))
		_, wrong := errors.AsType[usageError](err)
		_, misconfigured := errors.AsType[config.Errors](err)
		if wrong || misconfigured ||
			lending.ErrorCode(err) == lending.CodeValidation && !lending.IsTaken(err) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// unparsed reports a command line that the parser refused, or whose help cannot be written, and
// returns the exit status.
func (env *environment) unparsed(err error) int {
	if _, unwritten := errors.AsType[*fs.PathError](err); unwritten {
		env.complain("writing the help: %s", lending.OneLine(err))
		return exitFailed
	}
	asked := "drawbridge"
	if failed, ok := errors.AsType[*kong.ParseError](err); ok && failed.Context.Selected() != nil {
		asked = failed.Context.Selected().FullPath()
	}
	env.complain("%s (see %s --help)", plain(lending.OneLine(err)), asked)
	return exitUsage
}

// emptyFlag is the first flag that was given an empty value and is not marked as accepting one. The
// cause is usually a shell variable that is not set: as a filter it would match everything.
func emptyFlag(given *kong.Context) string {
	for _, step := range given.Path {
		if step.Flag != nil && !step.Flag.Tag.Has("empty") && isEmpty(step.Flag.Target) {
			return step.Flag.Name
		}
	}
	return ""
}

// isEmpty reports whether the value of a given flag, or one of its values, is an empty text. The
// parser turns an empty comma-separated value into an empty list.
func isEmpty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer:
		return !value.IsNil() && isEmpty(value.Elem())
	case reflect.Slice:
		for i := range value.Len() {
			if isEmpty(value.Index(i)) {
				return true
			}
		}
		return value.Len() == 0
	case reflect.String:
		return value.Len() == 0
	default:
	}
	return false
}

// complain writes a one-line error message.
func (env *environment) complain(format string, args ...any) {
	name := env.styleOf(env.stderr).paint(red, "drawbridge:")
	fmt.Fprintf(escapingWriter{env.stderr}, name+" "+format+"\n", args...)
}

// plain rewords the parser's messages about wrong values for the person who typed them.
func plain(text string) string {
	text, _, _ = strings.Cut(text, ": time: ")
	return strings.NewReplacer("a valid 64 bit int", "a whole number",
		"expected duration", "expected a length of time such as 30s or 12h",
		"bool value must be", "the value must be").Replace(text)
}

// newParser makes the parser of command lines; since the grammar is fixed, an error in it panics.
func newParser(env environment) *kong.Kong {
	parser := kong.Must(&grammar{},
		kong.Name("drawbridge"),
		kong.Description("Loans paid out in stages: partner API, webhooks and console."),
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(code int) { panic(stopped(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups(groups),
	)
	for name, text := range examples {
		if node := find(parser.Model.Node, strings.Fields(name)); node != nil {
			node.Detail = strings.TrimSpace(node.Detail + "\n\nExamples:\n\n" + text)
		}
	}
	for _, command := range parser.Model.Children {
		for _, child := range command.Children {
			// Otherwise they are listed under the title of the command's group; without a key, twice.
			child.Group = &kong.Group{Key: "commands", Title: "Commands:"}
		}
	}
	return parser
}

// find follows command names down from node; it returns nil if one does not exist.
func find(node *kong.Node, names []string) *kong.Node {
	for _, name := range names {
		i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == name })
		if i < 0 {
			return nil
		}
		node = node.Children[i]
	}
	return node
}

type versionCmd struct{ jsonFlag }

// Run prints the version.
func (cmd versionCmd) Run(env *environment) error {
	return env.print(cmd.JSON, output{
		map[string]string{"version": version},
		func(w io.Writer) { fmt.Fprintln(w, version) },
	})
}
