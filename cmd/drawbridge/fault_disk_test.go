//go:build chaos

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/views/paths"
)

// storage is a service whose uploads go to small disks.
type storage struct {
	*world

	server *server
	load   *load
	// blobs and spool are seen from outside.
	blobs, spool string
}

// diskSize is that of each of the two disks.
const diskSize = 2 << 20

// newStorage mounts a disk for the bucket and one for temporary files, both of
// which only the service sees.
func newStorage(t *testing.T, r *recordingReceiver) *storage {
	t.Helper()
	w := newWorld(t)
	s := &storage{world: w, load: w.newLoad(r)}
	blobs, spool := filepath.Join(w.folder, "blobs"), filepath.Join(w.folder, "spool")
	for _, folder := range []string{blobs, spool} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.vars["DRAWBRIDGE_BLOB_URL"], w.vars["TMPDIR"] = "file://"+blobs, spool
	s.server = w.start(apart(w.command("serve"), fmt.Sprintf(
		"for folder in '%s' '%s'; do mount -t tmpfs -o size=%d tmpfs \"$folder\"; done",
		blobs, spool, diskSize)))
	s.blobs, s.spool = s.server.within(blobs), s.server.within(spool)
	s.load.use(s.server)
	return s
}

// put uploads a document of 300 KiB to a path of a loan and returns the answer.
func (s *storage) put(path, key string) granted {
	s.t.Helper()
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, _ := form.CreateFormFile("files", "certificate.pdf") // a buffer takes everything
	_, _ = io.WriteString(part, pdf[:len("%PDF-1.4\n")]+"%"+strings.Repeat("x", 300<<10)+"\n"+pdf[9:])
	_ = form.WriteField("metadata", `{"projectName":"Roof","completionDate":"2026-01-31"}`)
	_ = form.Close()
	b := &borrowers{load: s.load}
	got, err := b.once(s.t.Context(), http.DefaultClient, wish{
		method: http.MethodPost, path: path, key: key,
		body: text.Bytes(), contentType: form.FormDataContentType(),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// files lists what is stored, but not what fills the disk.
func (s *storage) files() []string {
	s.t.Helper()
	var found []string
	for _, root := range []string{s.blobs, s.spool} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && entry.Name() != "ballast" {
				found = append(found, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return found
}

// refuses checks that an upload is refused in so many words and leaves nothing.
func (s *storage) refuses(path, key string) {
	s.t.Helper()
	before := s.files()
	got := s.put(path, key)
	var answer struct {
		Result struct {
			Data  any `json:"data"`
			Error struct{ Code, Message string }
		}
	}
	err := json.Unmarshal([]byte(got.body), &answer)
	if err != nil || got.status != http.StatusServiceUnavailable || answer.Result.Data != nil ||
		answer.Result.Error.Code != "UNAVAILABLE" ||
		!strings.Contains(answer.Result.Error.Message, "could not be stored") {
		s.t.Errorf("a full disk answers %d %s", got.status, got.body)
	}
	if after := s.files(); len(after) != len(before) {
		s.t.Errorf("%v were left, there were %v", after, before)
	}
}

// doctor returns what the doctor finds of a name, on the disks of the service.
func (s *storage) doctor(name string) checkup {
	s.t.Helper()
	own := map[string]string{"DRAWBRIDGE_BLOB_URL": "file://" + s.blobs, "TMPDIR": s.spool}
	for name, value := range s.vars {
		if own[name] == "" {
			own[name] = value
		}
	}
	w := &world{t: s.t, folder: s.folder, program: s.program, vars: own}
	var found struct{ Checks []checkup }
	if err := json.Unmarshal([]byte(w.run("", "doctor", "--json").stdout), &found); err != nil {
		s.t.Fatal(err)
	}
	for _, one := range found.Checks {
		if one.Name == name {
			return one
		}
	}
	s.t.Fatalf("the doctor does not look at %s", name)
	return checkup{}
}

// TestFaultFullDisk fills the disk of the bucket, and then that of the temporary
// files, while events are recorded and delivered.
func TestFaultFullDisk(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	s := newStorage(t, r)
	var data demoJSON
	s.json(&data, "demo")
	var final, other string
	for _, one := range data.Loans {
		switch one.Stage {
		case "final":
			final = one.UID.String()
		case "middle":
			other = one.UID.String()
		}
	}
	certificate, draw := "/v2/loan/"+other+"/completion-cert-upload", "/v2/loan/"+final+"/request-draw"
	if got := s.put(certificate, "first"); got.status != http.StatusCreated {
		t.Fatalf("an empty disk answers %d %s", got.status, got.body)
	}
	var loading sync.WaitGroup
	loading.Go(func() { s.load.run(1000) })
	for _, disk := range []struct{ name, folder string }{
		{"bucket", s.blobs}, {"temporary", s.spool},
	} {
		ballast := filepath.Join(disk.folder, "ballast")
		fill(t, ballast)
		s.refuses(certificate, "while-"+disk.name)
		s.refuses(draw, "draw")
		if found := s.doctor(disk.name); found.Finding != findingFailed ||
			!strings.Contains(found.Remedy, "The disk is full") {
			t.Errorf("the doctor says %+v", found)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if got := s.put(certificate, "while-"+disk.name); got.status != http.StatusCreated {
			t.Errorf("after space was freed, the same call answers %d %s", got.status, got.body)
		}
		if found := s.doctor(disk.name); found.Finding != findingOK {
			t.Errorf("after space was freed, the doctor says %+v", found)
		}
	}
	if got := s.put(draw, "draw"); got.status != http.StatusOK {
		t.Errorf("the draw that was refused twice answers %d %s", got.status, got.body)
	}
	loading.Wait()
	s.check(r, final)
}

// check compares documents and deliveries with what was answered.
func (s *storage) check(r *recordingReceiver, final string) {
	s.t.Helper()
	db := s.open(s.t)
	var stored []struct {
		Application string `db:"application_uid"`
		File        string `db:"file_uid"`
	}
	err := db.SelectContext(s.t.Context(), &stored, `
		SELECT application_uid, file_uid
		  FROM certificate_files JOIN certificates USING (certificate_uid)`)
	if files := s.files(); err != nil || len(stored) != 4 || len(files) != len(stored) {
		s.t.Errorf("%d documents in the database, in the bucket %v (%v)", len(stored), files, err)
	}
	var draws int
	err = db.GetContext(s.t.Context(), &draws, `
		SELECT count(*) FROM disbursements WHERE application_uid = $1 AND status = 'FUNDING_REQUESTED'`,
		final)
	if err != nil || draws != 1 {
		s.t.Errorf("the loan has %d open draws (%v)", draws, err)
	}
	v := visit(s.t, s.server.url)
	for _, one := range stored {
		path := strings.Replace(at(paths.Document, one.Application), ":file", one.File, 1)
		if size := len(v.get(path)); size < 300<<10 {
			s.t.Errorf("document %s has %d bytes in the console", one.File, size)
		}
	}
	waitUntilSettled(s.t, db, 5*time.Minute)
	found := audit(s.t, db, r, s.load.confirmed())
	if failed := s.load.errors.Load(); failed > 0 {
		s.t.Errorf("%d calls without documents were not confirmed", failed)
	}
	s.consoleTells(found)
	s.t.Logf("%d documents; %+v", len(stored), found)
}
