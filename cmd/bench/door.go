package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"
)

// doorFloor is the name of the floor of the door section.
const doorFloor = "River, a job per transaction, POSTed"

// door measures the real program from outside: a partner's request comes in, the change commits
// with its event, and the signed webhook arrives. Callers, program and endpoints are three
// processes; to measure the floor, another process takes the program's place.
func (b *bench) door(ctx context.Context, open *cleanup, secured bool) error {
	rounds, each := b.sizes.rounds, b.sizes.door/b.sizes.rounds
	paced, rate := b.sizes.rate*b.sizes.seconds, float64(b.sizes.rate)
	d, err := b.openDoor(ctx, open, secured, warmUps+paced+rounds*each)
	if err != nil {
		return err
	}
	if _, _, err := d.draw(ctx, warmUps, 0); err != nil {
		return err
	}
	scheme := schemeName(secured)
	b.say("door over %s: %d calls at %d/s, then %d by %d callers",
		scheme, paced, b.sizes.rate, rounds*each, clients)
	_, steady, err := d.draw(ctx, paced, rate)
	if err != nil {
		return err
	}
	_, steadyFloor, err := d.floor(ctx, paced, rate)
	if err != nil {
		return err
	}
	var ours, floors, arrived, arrivedFloor timing
	for range rounds {
		took, after, err := d.draw(ctx, each, 0)
		if err != nil {
			return err
		}
		ours, arrived = ours.join(took), arrived.join(after)
		if took, after, err = d.floor(ctx, each, 0); err != nil {
			return err
		}
		floors, arrivedFloor = floors.join(took), arrivedFloor.join(after)
	}
	line := row{Section: "at the door: call in, webhook out", FloorName: doorFloor}
	b.reportRate(line.Section, scheme+", request-draw", ours,
		[]floor{{doorFloor, floors, "> 0.8x the floor", "< 1.2x the floor"}})
	line.Name, line.Unit, line.Aim = scheme+", processors busy", "%", "100 %"
	line.Value, line.Floor = ours.busyShare()*100, floors.busyShare()*100
	b.report.add(line)
	line.Name, line.Aim = scheme+", call to arrival", ""
	b.report.addTimes(line, arrived, arrivedFloor, share{"p50", 0.5, ""}, share{"p99", 0.99, ""})
	line.Name = fmt.Sprintf("%s, at %d/s, call to arrival", scheme, b.sizes.rate)
	b.report.addTimes(line, steady, steadyFloor,
		share{"p50", 0.5, "< 4 ms"}, share{"p99", 0.99, "< 10 ms"})
	return nil
}

// busyShare is the share of the processors that was busy, from 0 to 1.
func (t timing) busyShare() float64 {
	return t.busy.Seconds() / t.total.Seconds() / float64(runtime.NumCPU())
}

// doorway is the running program or its floor, with the endpoint that gets the webhooks.
type doorway struct {
	*apiRun

	cluster  *cluster
	program  *program
	targets  *receivers
	arrivals *moments
	// certificate is trusted for the API and the endpoints, in PEM; empty without TLS.
	certificate []byte
	// left are the applications without a draw, came is how many webhooks have come.
	left unused
	came int
	// floors has the database of the floor.
	floors *harness
}

// openDoor starts the program and one endpoint, and prepares n applications.
func (b *bench) openDoor(
	ctx context.Context, open *cleanup, secured bool, n int,
) (*doorway, error) {
	d := &doorway{cluster: b.cluster, arrivals: newMoments()}
	set, err := b.stage(ctx, open,
		scene{endpoints: 1, secured: secured, arrived: d.arrivals.noteArrival})
	if err != nil {
		return nil, err
	}
	d.targets = set.targets
	if d.apiRun, err = newCallingPartner(ctx, set.harness, d.targets.urls[0]); err != nil {
		return nil, err
	}
	if d.left, err = set.harness.applications(ctx, d.owner, opened, n); err != nil {
		return nil, err
	}
	if d.floors, err = b.newHarness(ctx, open, nil); err != nil {
		return nil, err
	}
	d.program, err = buildProgram(ctx, b.cluster, d.harness.DB.URL(),
		"DRAWBRIDGE_SECRETS_KEY="+d.harness.Settings.SecretsKey,
		"DRAWBRIDGE_WEBHOOK_ALLOW=127.0.0.0/8", "DRAWBRIDGE_WEBHOOK_ALLOW_HTTP=true")
	if err != nil {
		return nil, err
	}
	if secured {
		if err := d.secure(); err != nil {
			return nil, err
		}
	}
	if err := settle(ctx, d.harness.DB); err != nil {
		return nil, err
	}
	if err := d.program.serve(ctx); err != nil {
		return nil, err
	}
	open.add(d.program.stop)
	_, d.address, _ = strings.Cut(d.program.origin, "://")
	// The preparations cause webhooks, too.
	if err := set.delivered(ctx, 1); err != nil {
		return nil, err
	}
	d.came = int(d.targets.count.Load())
	return d, nil
}

// secure makes the program serve with its endpoint's certificate, and trust that.
func (d *doorway) secure() error {
	pair := d.targets.servers[0].TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("writing the certificate's key: %w", err)
	}
	d.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	paths := make([]string, 2)
	for i, content := range [][]byte{d.certificate, key} {
		paths[i] = filepath.Join(d.program.folder, []string{"cert.pem", "key.pem"}[i])
		if err := os.WriteFile(paths[i], content, 0o600); err != nil {
			return fmt.Errorf("writing the certificate: %w", err)
		}
	}
	d.program.settings = append(d.program.settings, "SSL_CERT_FILE="+paths[0],
		"DRAWBRIDGE_TLS_CERT="+paths[0], "DRAWBRIDGE_TLS_KEY="+paths[1])
	return nil
}

// unused are applications that have not been used yet.
type unused []uuid.UUID

// take removes n of them and returns them.
func (u *unused) take(n int) []uuid.UUID {
	taken := (*u)[:n]
	*u = (*u)[n:]
	return taken
}

// draw makes n requests, at a rate, or as fast as they are answered if the rate is 0. It returns
// the time until the last attempt was recorded, and the time from each request to its webhook.
func (d *doorway) draw(ctx context.Context, n int, rate float64) (took, arrived timing, err error) {
	uids := d.left.take(n)
	m, err := d.cluster.meter(d.program.process.Process.Pid)
	if err != nil {
		return timing{}, timing{}, err
	}
	clock, err := m.clock(n)
	if err != nil {
		return timing{}, timing{}, err
	}
	found, err := d.callSeparately(ctx, callTask{
		Base: "/api", Roots: d.certificate, Applications: uids, Callers: clients, Rate: rate,
	})
	if err != nil {
		return timing{}, timing{}, err
	}
	set := stageSet{harness: d.harness, targets: d.targets}
	if err := set.delivered(ctx, d.came+n); err != nil {
		return timing{}, timing{}, err
	}
	if took, err = clock(); err != nil {
		return timing{}, timing{}, err
	}
	arrived, err = d.match(uids, found)
	return took, arrived, err
}

// match returns how long after each request its webhook came; each must have come once.
func (d *doorway) match(uids []uuid.UUID, found findings) (timing, error) {
	d.came += len(uids)
	if err := d.targets.check(d.came); err != nil {
		return timing{}, err
	}
	began := newMoments()
	for i, uid := range uids {
		began.note(uid, found.Began[i])
	}
	return began.timeTo(d.arrivals, uids)
}

// floorTask is the task of the floor: transactions that only insert a job, which only makes a POST.
type floorTask struct {
	URL, Folder, Endpoint string
	Postmaster            int
	Roots                 []byte
	// Applications are those named in the bodies; the first WarmUps are not measured.
	Applications []uuid.UUID
	WarmUps      int
	Rate         float64
}

// floor runs the floor in place of the program, and measures the same as draw.
func (d *doorway) floor(
	ctx context.Context, n int, rate float64,
) (took, arrived timing, err error) {
	uids := make([]uuid.UUID, warmUps+n)
	for i := range uids {
		uids[i] = uuid.New()
	}
	m, err := d.cluster.meter(0)
	if err != nil {
		return timing{}, timing{}, err
	}
	found, err := runSeparately(ctx, "floor", floorTask{
		URL: d.floors.DB.URL(), Folder: d.cluster.folder, Endpoint: d.targets.urls[0],
		Postmaster: m.Postmaster, Roots: d.certificate,
		Applications: uids, WarmUps: warmUps, Rate: rate,
	})
	if err != nil {
		return timing{}, timing{}, err
	}
	if arrived, err = d.match(uids, found); err != nil {
		return timing{}, timing{}, err
	}
	return timing{
		each: make([]time.Duration, n), total: found.Total, processor: found.Processor, busy: found.Busy,
	}, timing{each: arrived.each[warmUps:]}, nil
}

// floorCmd is the command that floor runs in the separate process.
type floorCmd struct{}

// Run reads its task, and writes when each transaction began and how long all took.
func (floorCmd) Run(w *world) (err error) {
	var task floorTask
	if err := json.NewDecoder(w.in).Decode(&task); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	var open cleanup
	defer open.run(&err)
	settings, err := configure(task.URL, task.Folder)
	if err != nil {
		return err
	}
	h, err := openHarness(w.ctx, &open, settings, nil)
	if err != nil {
		return err
	}
	targets := endpoints{roots: trusting(task.Roots)}
	client := targets.client(webhookWorkers)
	n := len(task.Applications)
	worker, config := h.floorWorker(n, func(ctx context.Context, _, i int) error {
		return post(ctx, client, task.Endpoint, fmt.Appendf(nil,
			`{"application_id":%q,"status":"FUNDING_REQUESTED","timestamp":"2026-01-02T15:04:05.000000Z"}`,
			task.Applications[i]))
	})
	found := findings{Began: make([]time.Time, n)}
	insert := func(from, to int) error {
		return pace{rate: task.Rate, most: clients}.run(w.ctx, to-from,
			func(i int, _ time.Time) error {
				found.Began[from+i] = time.Now()
				return h.insertJob(w.ctx, 0, from+i)
			})
	}
	err = h.runQueue(w.ctx, config, func() error {
		err := errors.Join(insert(0, task.WarmUps), waitUntil(w.ctx, func() (bool, error) {
			return worker.left.Load() == int64(n-task.WarmUps), nil
		}))
		if err != nil {
			return err
		}
		clock, err := meter{os.Getpid(), task.Postmaster}.clock(n - task.WarmUps)
		if err != nil {
			return err
		}
		if err := errors.Join(insert(task.WarmUps, n), h.worked(w.ctx, worker)); err != nil {
			return err
		}
		took, err := clock()
		found.Total, found.Processor, found.Busy = took.total, took.processor, took.busy
		return err
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(w.out).Encode(found)
}
