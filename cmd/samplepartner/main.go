// Command samplepartner is a partner's side of Drawbridge, as an integrator
// might write it: a client that takes a loan through all stages, and a webhook
// receiver that checks signatures. It uses only the standard library and depends
// only on Drawbridge's published contract; take what you need from it.
//
//	samplepartner run --base-url URL --client-id ID --client-secret SECRET
//	samplepartner receive --listen 127.0.0.1:9911 --secret SIGNING_SECRET
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `samplepartner is a sample client and webhook receiver for Drawbridge.

  samplepartner run       walks one loan through the sandbox
  samplepartner receive   receives webhooks and checks their signatures

Each takes --help, which names the environment variables that can replace flags.
`

// errUsage marks an error of the command line, for which the exit status is 2.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "samplepartner:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// command runs one sub-command. Events and steps go to out.
func command(
	ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer,
) error {
	if len(args) == 0 {
		_, _ = io.WriteString(errs, usage)
		return fmt.Errorf("%w: name a command, run or receive", errUsage)
	}
	switch args[0] {
	case "run":
		return runCommand(ctx, args[1:], getenv, out, errs)
	case "receive":
		return receiveCommand(ctx, args[1:], getenv, out, errs)
	case "help", "-h", "--help":
		_, _ = io.WriteString(out, usage)
		return nil
	default:
		return fmt.Errorf("%w: there is no command %q, only run and receive", errUsage, args[0])
	}
}

// parse reads flags; any other argument is an error.
func parse(flags *flag.FlagSet, args []string, errs io.Writer) error {
	flags.SetOutput(errs)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%w: %q is not a flag", errUsage, flags.Arg(0))
	}
	return nil
}

func runCommand(
	ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer,
) error {
	client := NewClient()
	plan := Plan{Amount: "25000.00"}
	flags := flag.NewFlagSet("samplepartner run", flag.ContinueOnError)
	flags.StringVar(&client.BaseURL, "base-url", getenv("PARTNER_BASE_URL"),
		"the base URL of the API, without /v2, such as http://127.0.0.1:8080/api [PARTNER_BASE_URL]")
	flags.StringVar(&client.ID, "client-id", getenv("PARTNER_CLIENT_ID"),
		"your client id [PARTNER_CLIENT_ID]")
	flags.StringVar(&client.Secret, "client-secret", getenv("PARTNER_CLIENT_SECRET"),
		"your client secret [PARTNER_CLIENT_SECRET]")
	flags.StringVar(&client.MerchantUID, "merchant", getenv("PARTNER_MERCHANT_UID"),
		"the merchant to act for; required for group accounts [PARTNER_MERCHANT_UID]")
	flags.StringVar(&plan.ProductUID, "product", getenv("PARTNER_PRODUCT_UID"),
		"the product to accept; empty takes the first offer [PARTNER_PRODUCT_UID]")
	flags.StringVar(&plan.Amount, "amount", plan.Amount, "the amount that the borrower requests")
	timeout := flags.Duration("timeout", 2*time.Minute, "time limit of the whole run")
	if err := parse(flags, args, errs); err != nil {
		return err
	}
	for _, required := range []struct{ name, value string }{
		{"base-url", client.BaseURL}, {"client-id", client.ID}, {"client-secret", client.Secret},
	} {
		if required.value == "" {
			return fmt.Errorf("%w: --%s is required", errUsage, required.name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	return plan.Run(ctx, client, out)
}

func receiveCommand(
	ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer,
) error {
	receiver := NewReceiver(out)
	flags := flag.NewFlagSet("samplepartner receive", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:9911", "host:port to listen on")
	flags.StringVar(&receiver.Secret, "secret", getenv("PARTNER_SIGNING_SECRET"),
		"the signing secret; if empty, no signature is checked [PARTNER_SIGNING_SECRET]")
	flags.BoolVar(&receiver.Standard, "standard", false,
		"check the signature and time of Standard Webhooks instead of x-hmac-signature")
	flags.StringVar(&receiver.Token, "token", getenv("PARTNER_BEARER_TOKEN"),
		"the bearer token; if empty, no token is checked [PARTNER_BEARER_TOKEN]")
	certificate := flags.String("tls-cert", "", "certificate file, for https")
	key := flags.String("tls-key", "", "key file, for https")
	if err := parse(flags, args, errs); err != nil {
		return err
	}
	if (*certificate == "") != (*key == "") {
		return fmt.Errorf("%w: --tls-cert and --tls-key must be given together", errUsage)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", *listen, err)
	}
	return serve(ctx, listener, receiver, *certificate, *key)
}

// serve answers until ctx ends, then finishes the requests in flight.
func serve(
	ctx context.Context, listener net.Listener, receiver *Receiver, certificate, key string,
) error {
	server := &http.Server{
		Handler:           receiver,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       20 * time.Second,
	}
	scheme := "http"
	if certificate != "" {
		scheme = "https"
	}
	receiver.print("listening on %s://%s/webhooks", scheme, listener.Addr())
	ended := make(chan error, 1)
	go func() {
		if certificate != "" {
			ended <- server.ServeTLS(listener, certificate, key)
			return
		}
		ended <- server.Serve(listener)
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(patience); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}
