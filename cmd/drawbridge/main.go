// Command drawbridge is the whole service in one binary: the partner API, the
// operator console, the workers, and the commands that set them up.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"drawbridge/internal/config"
	"drawbridge/internal/lending"
)

// version is stamped by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, environment{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
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
	Serve        serveCmd        `cmd:"" help:"Run the API, the console and the workers."`
	Migrate      migrateCmd      `cmd:"" help:"Bring the database schema up, down, or show it."`
	Demo         demoCmd         `cmd:"" help:"Load the demo data set and print it."`
	Partner      partnerCmd      `cmd:"" help:"Partner organisations."`
	Merchant     merchantCmd     `cmd:"" help:"Merchants of a partner."`
	Client       clientCmd       `cmd:"" help:"API credentials of a partner."`
	Product      productCmd      `cmd:"" help:"Loan products."`
	Subscription subscriptionCmd `cmd:"" help:"Webhook subscriptions."`
	Event        eventCmd        `cmd:"" help:"Events, and why a subscription got one or not."`
	Delivery     deliveryCmd     `cmd:"" help:"The webhook delivery log and re-sending."`
	Email        emailCmd        `cmd:"" help:"The e-mail log and re-sending."`
	Bulk         bulkCmd         `cmd:"" help:"Bulk re-sends: many deliveries sent again, planned and paced."`
	Application  applicationCmd  `cmd:"" help:"Legal holds on applications."`
	Retention    retentionCmd    `cmd:"" help:"How long things are kept, and their removal."`
	Restore      restoreCmd      `cmd:"" help:"What a database that was restored from a backup may send."`
	Secrets      secretsCmd      `cmd:"" help:"The key of the secrets at rest."`
	User         userCmd         `cmd:"" help:"Users of the console."`
	Health       healthCmd       `cmd:"" help:"Ask the process on this machine whether it lives, or can serve."`
	Doctor       doctorCmd       `cmd:"" help:"Check what the service depends on and say what to do."`
	Config       configCmd       `cmd:"" help:"Print the effective settings, secrets masked."`
	Seed         seedCmd         `cmd:"" hidden:"" help:"Fill a development database with deliveries."`
	Version      versionCmd      `cmd:"" help:"Print the version."`
}

// stopped ends the parsing of a command line early, after --help.
type stopped int

// usageError is a wrong command line that the parser could not see.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return usageError{fmt.Sprintf(format, args...)}
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, env environment) (status int) {
	defer func() {
		if early, ok := recover().(stopped); ok {
			status = int(early)
		}
	}()
	var commands grammar
	parser, err := kong.New(&commands,
		kong.Name("drawbridge"),
		kong.Description("Loans paid out in stages: partner API, webhooks and console."),
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(code int) { panic(stopped(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"variables": variablesHelp()},
	)
	if err != nil {
		// The grammar is a constant of the program.
		panic(err)
	}
	command, err := parser.Parse(env.args)
	if err != nil {
		fmt.Fprintf(env.stderr, "drawbridge: %s (see drawbridge --help)\n", lending.OneLine(err))
		return exitUsage
	}
	env.ctx = ctx
	if err := command.Run(&env); err != nil {
		fmt.Fprintf(env.stderr, "drawbridge: %s\n", lending.OneLine(err))
		return statusOf(err)
	}
	return exitOK
}

// statusOf tells wrong usage from failure.
func statusOf(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[config.Faults](err); ok {
		return exitUsage
	}
	if lending.ErrorCode(err) == lending.CodeValidation && !lending.IsTaken(err) {
		return exitUsage
	}
	return exitFailed
}

// variablesHelp lists the settings for the help of serve.
func variablesHelp() string {
	var text strings.Builder
	text.WriteString("Run the API, the console and the workers.\n\n" +
		"Settings come from the environment, and the same names from an optional file .env:\n")
	for _, variable := range config.Variables() {
		value := variable.Default
		if value == "" {
			value = "empty"
		}
		if variable.Development != "" {
			value += "; in development " + variable.Development
		}
		fmt.Fprintf(&text, "\n  %s (default: %s)\n      %s.\n", variable.Name, value, variable.Meaning)
	}
	return text.String()
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(env *environment) error {
	_, err := fmt.Fprintln(env.stdout, version)
	return err
}
