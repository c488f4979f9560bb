package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/pprof"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/web"
)

// clients make requests at the same time, each over its own connection.
const clients = 16

// operation is an API request that is measured.
type operation struct {
	name string
	// needs is the stage that the application must have reached.
	needs stage
	// request makes the request for an application of the tenant; inProcess does the same
	// without HTTP, so that it can be recorded.
	request   func(t tenant, uid uuid.UUID) call
	inProcess func(h *harness, ctx context.Context, t tenant, uid uuid.UUID, key string) error
	// keyed requests have an Idempotency-Key.
	keyed bool
	// done is a query that counts the applications among $1 on which it took effect; empty
	// for an operation that changes nothing.
	done string
	aim  string
}

// operations are the operations in the table.
var operations = []operation{
	{
		name: "request-draw", needs: opened, aim: "> 0.7", done: drawn,
		request: drawCall, inProcess: (*harness).requestDraw,
	},
	{
		name: "request-draw with an Idempotency-Key", needs: opened, done: drawn,
		request: drawCall, inProcess: (*harness).requestDraw, keyed: true,
	},
	{
		name: "accept-offer", needs: offered, aim: "> 0.7",
		request: func(t tenant, uid uuid.UUID) call {
			return call{
				method: http.MethodPut, path: "/v2/application/accept-offer",
				body: fmt.Sprintf(`{"thrive_application_uid":%q,"selected_product_uid":%q}`,
					uid, t.product),
			}
		},
		inProcess: func(h *harness, ctx context.Context, t tenant, uid uuid.UUID, _ string) error {
			return h.DB.InTx(ctx, func(tx *postgres.Tx) error {
				_, err := h.Applications.AcceptOffer(ctx, tx, t.caller(),
					application.Acceptance{ApplicationUID: uid, ProductUID: t.product})
				return err
			})
		},
		done: `SELECT count(*) FROM emails WHERE kind = 'welcome' AND application_uid = ANY ($1)`,
	},
	{
		name: "GET loan", needs: opened,
		request: func(_ tenant, uid uuid.UUID) call {
			return call{method: http.MethodGet, path: "/v2/loan/" + uid.String()}
		},
		inProcess: func(h *harness, ctx context.Context, t tenant, uid uuid.UUID, _ string) error {
			_, err := h.Loans.Get(ctx, t.caller(), uid)
			return err
		},
	},
}

// drawn counts draws by their events.
const drawn = `
	SELECT count(*)
	  FROM disbursements d
	  JOIN events e USING (application_uid)
	  JOIN deliveries USING (event_uid)
	 WHERE e.status = 'FUNDING_REQUESTED'
	   AND d.application_uid = ANY ($1)`

func drawCall(_ tenant, uid uuid.UUID) call {
	return call{method: http.MethodPost, path: "/v2/loan/" + uid.String() + "/request-draw"}
}

// key is the Idempotency-Key of the operation for an application, empty if it has none.
func (o operation) key(uid uuid.UUID) string {
	if o.keyed {
		return uid.String()
	}
	return ""
}

// requestDraw does what the handler of a draw does, without HTTP.
func (h *harness) requestDraw(ctx context.Context, t tenant, uid uuid.UUID, key string) error {
	request := idempotency.Request{
		ClientID: t.client.ClientID, MerchantUID: t.merchant, Key: key,
		Fingerprint: idempotency.NewFingerprint(http.MethodPost, uid.String(), sha256.Sum256(nil)),
	}
	_, err := h.Idempotency.Run(ctx, request, func(tx *postgres.Tx) (idempotency.Reply, error) {
		made, err := h.Loans.RequestDraw(ctx, tx, t.caller(), uid, loan.DrawInput{})
		return idempotency.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil, "%v", made)}, err
	})
	return err
}

// api measures the operations over HTTP, each compared with its SQL statements alone. Events stay
// in the outbox, since no worker runs.
func (b *bench) api(ctx context.Context, open *cleanup) error {
	a, err := b.newAPI(ctx, open)
	if err != nil {
		return err
	}
	for _, operation := range operations {
		if err := b.operation(ctx, a, operation); err != nil {
			return fmt.Errorf("%s: %w", operation.name, err)
		}
	}
	if b.profile == "" {
		return nil
	}
	return b.profileDraws(ctx, a)
}

// apiRun is a running server and its clients.
type apiRun struct {
	harness *harness
	owner   tenant
	address string
	callers []*caller
}

// newCallingPartner adds the partner that makes the requests, whose webhooks go to the endpoint,
// and its product.
func newCallingPartner(ctx context.Context, h *harness, endpoint string) (*apiRun, error) {
	a := &apiRun{harness: h}
	var err error
	if a.owner, err = h.newTenant(ctx, "Partner", endpoint); err != nil {
		return nil, err
	}
	err = h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		product, err := h.Catalog.Create(ctx, tx, catalog.NewProduct{
			Code: "P404020", Name: "Three draws", Term: "120", Rate: "7.99", Fee: "3.75",
			Schedule: "40,40,20", Min: "1000.00", Max: "100000.00",
		})
		if err != nil {
			return err
		}
		a.owner.product, err = uuid.Parse(product.UID)
		return err
	})
	return a, err
}

// newAPIRun serves the API of the harness and connects clients of a partner whose webhooks go
// to the endpoint.
func newAPIRun(ctx context.Context, open *cleanup, h *harness, endpoint string) (*apiRun, error) {
	a, err := newCallingPartner(ctx, h, endpoint)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the API: %w", err)
	}
	options, err := h.WebOptions()
	if err != nil {
		return nil, err
	}
	server := web.NewServer(web.New(web.Options{
		API: options.API, Now: h.DB.Now, Metrics: http.NotFoundHandler(),
		Ready: func(*http.Request) []string { return nil },
	}))
	go func() { _ = server.Serve(listener) }() // close ends it
	open.add(server.Close)
	a.address = listener.Addr().String()
	for range clients {
		made, err := dialAPI(ctx, a.address, a.owner.client, nil)
		if err != nil {
			return nil, err
		}
		open.add(made.close)
		a.callers = append(a.callers, made)
	}
	return a, nil
}

// newAPI serves the API of a new harness without workers, so no webhook is sent.
func (b *bench) newAPI(ctx context.Context, open *cleanup) (*apiRun, error) {
	h, err := b.newHarness(ctx, open, nil)
	if err != nil {
		return nil, err
	}
	return newAPIRun(ctx, open, h, "http://127.0.0.1:9911/hook")
}

// newClient connects a client that create makes, with a rate limit that no measurement reaches.
func (a *apiRun) newClient(
	ctx context.Context, open *cleanup, create func(tx *postgres.Tx) (partner.Issued, error),
) (*caller, error) {
	var issued partner.Issued
	err := a.harness.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		if issued, err = create(tx); err != nil {
			return err
		}
		return a.harness.Partners.SetRate(ctx, tx, issued.ClientID, freeRate, freeBurst)
	})
	if err != nil {
		return nil, fmt.Errorf("adding a client: %w", err)
	}
	made, err := dialAPI(ctx, a.address, issued, nil)
	if err == nil {
		open.add(made.close)
	}
	return made, err
}

// calls is the task that makes the operation's request for one application after another.
func (a *apiRun) calls(o operation, uids []uuid.UUID) task {
	return func(_ context.Context, worker, i int) error {
		request := o.request(a.owner, uids[i])
		request.key = o.key(uids[i])
		return a.callers[worker].do(request)
	}
}

// replays is the task of the operation's floor.
func replays(s *script, uids []uuid.UUID) task {
	return func(ctx context.Context, _, i int) error { return s.replay(ctx, uids[i]) }
}

// operation measures one kind of API request. It alternates with its floor, so that both have
// the same tables and the same load on the machine.
func (b *bench) operation(ctx context.Context, a *apiRun, o operation) error {
	b.say("API: %s", o.name)
	rounds, perRound := b.sizes.rounds, b.sizes.operations/b.sizes.rounds
	uids, err := a.harness.applications(ctx, a.owner, o.needs, 1+2*clients+2*rounds*perRound)
	if err != nil {
		return err
	}
	script, err := a.record(ctx, o, uids[0])
	if err != nil {
		return err
	}
	if err := settle(ctx, a.harness.DB); err != nil {
		return err
	}
	rest := unused(uids[1:])
	if _, err := drive(ctx, clients, clients, a.calls(o, rest.take(clients))); err != nil {
		return err
	}
	if _, err := drive(ctx, clients, clients, replays(script, rest.take(clients))); err != nil {
		return err
	}
	var ours, floor timing
	for range rounds {
		took, err := drive(ctx, clients, perRound, a.calls(o, rest.take(perRound)))
		if err != nil {
			return err
		}
		ours = ours.join(took)
		if took, err = drive(ctx, clients, perRound, replays(script, rest.take(perRound))); err != nil {
			return fmt.Errorf("playing the floor: %w", err)
		}
		floor = floor.join(took)
	}
	line := row{
		Section:   fmt.Sprintf("API over HTTP, %d clients", clients),
		FloorName: "its statements alone over lib/pq",
		Name:      o.name, Unit: "/s", Value: ours.rate(), Floor: floor.rate(), Aim: o.aim,
	}
	b.report.add(line)
	b.report.addTimes(line, ours, floor, share{"p50", 0.5, ""}, share{"p99", 0.99, ""})
	return a.verify(ctx, o, uids)
}

// record runs the operation once over connections whose statements are recorded.
func (a *apiRun) record(ctx context.Context, o operation, uid uuid.UUID) (*script, error) {
	recorded, tape, err := a.harness.recorded()
	if err != nil {
		return nil, err
	}
	steps, err := tape.record(func() error {
		return o.inProcess(recorded, ctx, a.owner, uid, o.key(uid))
	})
	if err := errors.Join(err, recorded.close()); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return newScript(a.harness.DB.DB.DB, steps, uid,
		a.owner.partner, a.owner.merchant, a.owner.subscription, a.owner.product)
}

// verify returns an error unless the operation, or its floor, took effect on all applications.
func (a *apiRun) verify(ctx context.Context, o operation, uids []uuid.UUID) error {
	if o.done == "" {
		return nil
	}
	if err := a.harness.Outbox.Drain(ctx); err != nil {
		return err
	}
	var found int
	if err := a.harness.DB.GetContext(ctx, &found, o.done, pq.Array(uids)); err != nil {
		return fmt.Errorf("counting effects: %w", err)
	}
	if found != len(uids) {
		return fmt.Errorf("it took effect %d times, want %d", found, len(uids))
	}
	return nil
}

// profileDraws writes a CPU profile of a run of request-draw, which includes the clients, since
// they run in the same process as the server.
func (b *bench) profileDraws(ctx context.Context, a *apiRun) error {
	draw := operations[0]
	b.say("API: profiling %s", draw.name)
	uids, err := a.harness.applications(ctx, a.owner, draw.needs, b.sizes.operations)
	if err != nil {
		return err
	}
	if err := settle(ctx, a.harness.DB); err != nil {
		return err
	}
	file, err := os.Create(b.profile)
	if err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	_, err = drive(ctx, clients, len(uids), a.calls(draw, uids))
	return err
}
