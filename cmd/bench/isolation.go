package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// healthy endpoints confirm at once, failing ones answer 500, hanging ones
	// not at all.
	healthyEndpoints = 10
	failingEndpoints = 5
	hangingEndpoints = 1
	// isolationRate is in events per second over all endpoints.
	isolationRate = 150
)

// isolation measures from a commit to the arrival at healthy endpoints while
// others hang and fail, beside the same without those.
func (b *bench) isolation(ctx context.Context) error {
	alone, err := b.arrivals(ctx, false)
	if err != nil {
		return err
	}
	among, err := b.arrivals(ctx, true)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name  string
		share float64
		aim   string
	}{{"p50", 0.5, ""}, {"p99", 0.99, "< 2x the floor"}} {
		b.report.add(row{
			Section: "arrival at healthy endpoints while others are sick",
			Name: fmt.Sprintf("%d events, %d hanging and %d failing of %d endpoints, %s",
				b.sizes.isolated, hangingEndpoints, failingEndpoints,
				healthyEndpoints+failingEndpoints+hangingEndpoints, q.name),
			Unit:  "ms",
			Value: milliseconds(among.quantile(q.share)), Floor: milliseconds(alone.quantile(q.share)),
			FloorName: "without the sick ones", Aim: q.aim,
		})
	}
	return nil
}

// arrivals publishes events to all endpoints, or to the healthy ones alone, and
// returns how long after their commits those of the healthy ones arrived.
func (b *bench) arrivals(ctx context.Context, withSick bool) (took timing, err error) {
	b.say("isolation: events to healthy endpoints, sick ones beside them: %t", withSick)
	arrived := newMoments()
	healthy, err := newReceivers(ctx, healthyEndpoints, false, arrived.noteArrival)
	if err != nil {
		return timing{}, err
	}
	defer func() { err = errors.Join(err, healthy.close()) }()
	sick, err := newSick(ctx)
	if err != nil {
		return timing{}, err
	}
	h, err := b.newHouse(ctx, nil)
	if err != nil {
		return timing{}, errors.Join(err, sick.close())
	}
	defer func() { err = errors.Join(err, h.close()) }()
	urls := slices.Concat(healthy.urls, sick.urls)
	uids, err := h.borrowers(ctx, urls, b.sizes.isolated)
	if err != nil {
		return timing{}, errors.Join(err, sick.close())
	}
	well, told := wellOf(uids, len(urls)), uids
	rate := isolationRate
	if !withSick {
		told, rate = well, isolationRate*len(well)/len(uids)
	}
	stop, err := h.work(ctx)
	if err != nil {
		return timing{}, errors.Join(err, sick.close())
	}
	run := pacedRun{house: h, sending: newMoments(), committed: newMoments()}
	err = run.publish(ctx, told, rate)
	if err == nil {
		err = waitUntil(ctx, func() (bool, error) {
			return healthy.count.Load() >= int64(len(well)), nil
		})
	}
	// What hangs ends with its endpoint.
	if err := errors.Join(err, sick.close(), stop()); err != nil {
		return timing{}, err
	}
	if err := healthy.check(len(well)); err != nil {
		return timing{}, err
	}
	return run.committed.only(well).until(arrived)
}

// wellOf are the applications whose tenants have a healthy endpoint: borrowers
// come in turns, the healthy ones first.
func wellOf(uids []uuid.UUID, endpoints int) []uuid.UUID {
	var well []uuid.UUID
	for i, uid := range uids {
		if i%endpoints < healthyEndpoints {
			well = append(well, uid)
		}
	}
	return well
}

// only is what was noted of these applications.
func (m *moments) only(uids []uuid.UUID) *moments {
	m.mu.Lock()
	defer m.mu.Unlock()
	some := newMoments()
	for _, uid := range uids {
		some.at[uid] = m.at[uid]
	}
	return some
}

// sickEndpoints fail and hang.
type sickEndpoints struct {
	urls    []string
	servers []*http.Server
}

func newSick(ctx context.Context) (*sickEndpoints, error) {
	s := new(sickEndpoints)
	failing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	hanging := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	for i := range failingEndpoints + hangingEndpoints {
		handler := failing
		if i >= failingEndpoints {
			handler = hanging
		}
		if err := s.listen(ctx, handler); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// listen adds an endpoint on a port of its own.
func (s *sickEndpoints) listen(ctx context.Context, handler http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for webhooks: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	s.servers = append(s.servers, server)
	s.urls = append(s.urls, "http://"+listener.Addr().String()+"/hook")
	go func() { _ = server.Serve(listener) }() // it ends by close
	return nil
}

func (s *sickEndpoints) close() error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}
