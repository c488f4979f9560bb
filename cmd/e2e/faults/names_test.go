//go:build chaos

package faults

import (
	"crypto/tls"
	network "encoding/binary"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// nameServer answers every query for an IPv4 address with 127.0.0.1, after a pause that
// depends on the name: "slow" a second and a half, "dead" for ever.
type nameServer struct {
	conn  net.PacketConn
	asked atomic.Int64
}

// nameAddress is where it listens; resolvers use only port 53.
const nameAddress = "127.0.53.53"

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", nameAddress+":53")
	if err != nil {
		t.Fatalf("this test serves names on port 53, which root may: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &nameServer{conn: conn}
	go s.serve()
	return s
}

func (s *nameServer) serve() {
	for {
		question := make([]byte, 1500)
		n, from, err := s.conn.ReadFrom(question)
		if err != nil {
			return
		}
		name, end := nameOf(question[:n])
		answer := answerTo(question[:n], end)
		switch {
		case answer == nil || strings.HasPrefix(name, "dead."):
			s.asked.Add(1)
		case strings.HasPrefix(name, "slow."):
			time.AfterFunc(1500*time.Millisecond, func() { _, _ = s.conn.WriteTo(answer, from) })
		default:
			_, _ = s.conn.WriteTo(answer, from) // the client repeats the query if this is lost
		}
	}
}

// headerSize is the size of a message's header (RFC 1035, section 4.1.1).
const headerSize = 12

// nameOf reads the first question's name and where the question ends.
func nameOf(message []byte) (name string, end int) {
	at := headerSize
	var labels []string
	for at < len(message) && message[at] != 0 {
		size := int(message[at])
		if at+1+size > len(message) {
			return "", 0
		}
		labels = append(labels, string(message[at+1:at+1+size]))
		at += 1 + size
	}
	const typeAndClass = 4
	if at+1+typeAndClass > len(message) {
		return "", 0
	}
	return strings.Join(labels, "."), at + 1 + typeAndClass
}

// answerTo answers a query with 127.0.0.1 (IPv4) or no address; nil if the message is no query.
func answerTo(question []byte, end int) []byte {
	if end == 0 {
		return nil
	}
	answer := append([]byte{}, question[:end]...)
	network.BigEndian.PutUint16(answer[2:], 0x8180) // an answer, recursion desired and available
	for _, counter := range []int{6, 8, 10} {
		network.BigEndian.PutUint16(answer[counter:], 0)
	}
	const addressRecord = 1
	if network.BigEndian.Uint16(question[end-4:]) != addressRecord {
		return answer
	}
	network.BigEndian.PutUint16(answer[6:], 1)
	// The name of the question, type A, class IN, an hour, four bytes.
	return append(answer,
		0xc0, headerSize, 0, addressRecord, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 127, 0, 0, 1)
}

// TestFaultSlowNames runs the service with a name server that is slow with one
// endpoint's name and never answers for another's.
func TestFaultSlowNames(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	receivers := map[string]*recordingReceiver{}
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_WEBHOOK_TIMEOUT"] = "4s"
	w.Env["GODEBUG"] = "netdns=go"
	certificate, roots := e2etest.SelfSigned(t,
		"quick.partner.test", "slow.partner.test", "dead.partner.test")
	w.Env["SSL_CERT_FILE"] = roots
	good := newRecordingReceiver(t, 1)
	good.linger(0)
	l := newLoad(w, good) // by its address, like an old subscription
	data := w.DemoData()
	for _, name := range []string{"quick", "slow", "dead"} {
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
			Certificates: []tls.Certificate{certificate},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := newReceiverOn(t, listener, "https", 1)
		r.linger(0)
		receivers[name] = r
		url := strings.Replace(r.url, "127.0.0.1", name+".partner.test", 1)
		w.Subscribe(data, url, "--event", "task.created", "--auth", "none")
	}
	configuration := filepath.Join(w.Folder, "resolv.conf")
	if err := os.WriteFile(configuration, []byte("nameserver "+nameAddress+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := w.Start(e2etest.InMountNamespace(w.Command("serve"),
		"mount --bind '"+configuration+"' /etc/resolv.conf"))
	l.use(s)
	began := time.Now()
	l.run(100)
	events := len(l.confirmed()) // requests in flight may add a few
	db := w.Open(t)
	waittest.Within(t, 5*time.Minute, "the healthy endpoints have everything", func() bool {
		return good.deliveries() == events && receivers["quick"].deliveries() == events
	})
	healthy := time.Since(began)
	var open int
	err := db.GetContext(t.Context(), &open, `
		SELECT count(*) FROM deliveries d JOIN subscriptions s USING (subscription_uid)
		 WHERE s.url LIKE '%dead.partner.test%' AND d.state IN ('pending', 'retrying')`)
	if err != nil || open == 0 {
		t.Errorf("%d deliveries wait for the dead name (%v): the others waited with them", open, err)
	}
	waitUntilSettled(t, db, 10*time.Minute)
	var outcomes []struct {
		Name    string  `db:"name"`
		State   string  `db:"state"`
		Class   *string `db:"error_class"`
		Error   *string `db:"error"`
		Longest float64 `db:"longest"`
		Count   int     `db:"count"`
		Most    int     `db:"most"`
	}
	err = db.SelectContext(t.Context(), &outcomes, `
		SELECT substring(s.url FROM '//([a-z]*)\.partner') AS name, d.state, a.error_class, a.error,
		       max(a.duration_us) / 1e6 AS longest, count(*) AS count, max(a.number) AS most
		  FROM attempts a
		  JOIN deliveries d ON d.delivery_uid = a.delivery_uid
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE s.url LIKE '%partner.test%'
		 GROUP BY 1, 2, 3, 4`)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range outcomes {
		dead := one.Name == "dead"
		named := one.Class != nil && one.Error != nil && strings.Contains(*one.Error, "name")
		// On a busy machine the 4 s end later, and may be too short for the slow name.
		if dead != (one.State == "failed") || dead && !named || one.Name == "quick" && named ||
			one.Most > 3 || one.Longest > 10 {
			t.Errorf("%+v", one)
		}
		said := "no error"
		if one.Error != nil {
			said = *one.Error
		}
		if strings.Contains(said, nameAddress) {
			t.Errorf("an attempt tells the partner of our name server: %s", said)
		}
		t.Logf("%s: %d attempts, at most %.1f s, %s: %s",
			one.Name, one.Count, one.Longest, one.State, said)
	}
	if got := receivers["dead"].deliveries(); got != 0 || names.asked.Load() == 0 {
		t.Errorf("%d deliveries found a name that was never answered", got)
	}
	if got := receivers["slow"].deliveries(); got != events {
		t.Errorf("%d of %d deliveries came by the slow name", got, events)
	}
	uid := pgtest.Value[string](t, db,
		`SELECT delivery_uid FROM deliveries WHERE state = 'failed' LIMIT 1`)
	visit(t, s.URL).says(at(paths.Delivery, uid), "3 attempts of at most 3",
		"ime ran out while the name was looked up")
	status := e2etest.Call(t, w.DemoData(), http.MethodGet, s.URL+"/readyz", "")
	if status != http.StatusOK {
		t.Errorf("the service is not ready: %d", status)
	}
	t.Logf("%d events at the healthy endpoints after %s, all ended after %s", events,
		healthy.Round(time.Millisecond), time.Since(began).Round(time.Second))
}
