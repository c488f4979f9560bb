//go:build chaos

package faults

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

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/views/paths"
)

// storage is a service whose uploads are stored on small disks.
type storage struct {
	*e2etest.Harness

	server *e2etest.Server
	load   *load
	// blobs and spool are the disks' paths from outside.
	blobs, spool string
}

// diskSize is the size of each of the two disks.
const diskSize = 2 << 20

// newStorage mounts a disk for the bucket and one for temporary files, both visible only
// to the service.
func newStorage(t *testing.T, r *recordingReceiver) *storage {
	t.Helper()
	w := e2etest.New(t)
	s := &storage{Harness: w, load: newLoad(w, r)}
	blobs, spool := filepath.Join(w.Folder, "blobs"), filepath.Join(w.Folder, "spool")
	for _, folder := range []string{blobs, spool} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.Env["DRAWBRIDGE_BLOB_URL"], w.Env["TMPDIR"] = "file://"+blobs, spool
	s.server = w.Start(e2etest.InMountNamespace(w.Command("serve"), fmt.Sprintf(
		"for folder in '%s' '%s'; do mount -t tmpfs -o size=%d tmpfs \"$folder\"; done",
		blobs, spool, diskSize)))
	s.blobs, s.spool = within(s.server, blobs), within(s.server, spool)
	s.load.use(s.server)
	return s
}

// within is the path of such a process's folder from outside.
func within(s *e2etest.Server, folder string) string {
	return fmt.Sprintf("/proc/%d/root%s", s.Command.Process.Pid, folder)
}

// put uploads a document of 300 KiB to a path of a loan and returns the answer.
func (s *storage) put(path, key string) keyedResponse {
	s.T.Helper()
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, _ := form.CreateFormFile("files", "certificate.pdf") // writing to a buffer cannot fail
	_, _ = io.WriteString(part, pdf[:len("%PDF-1.4\n")]+"%"+strings.Repeat("x", 300<<10)+"\n"+pdf[9:])
	_ = form.WriteField("metadata", `{"projectName":"Roof","completionDate":"2026-01-31"}`)
	_ = form.Close()
	b := &borrowers{load: s.load}
	got, err := b.once(s.T.Context(), http.DefaultClient, keyedRequest{
		method: http.MethodPost, path: path, key: key,
		body: text.Bytes(), contentType: form.FormDataContentType(),
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return got
}

// files lists the stored files, without the one that fills the disk.
func (s *storage) files() []string {
	s.T.Helper()
	var found []string
	for _, root := range []string{s.blobs, s.spool} {
		err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && entry.Name() != "ballast" {
				found = append(found, strings.TrimPrefix(path, root))
			}
			return err
		})
		if err != nil {
			s.T.Fatal(err)
		}
	}
	return found
}

// refuses checks that an upload is refused with the right message and leaves nothing.
func (s *storage) refuses(path, key string) {
	s.T.Helper()
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
		s.T.Errorf("a full disk answers %d %s", got.status, got.body)
	}
	if after := s.files(); len(after) != len(before) {
		s.T.Errorf("%v were left, there were %v", after, before)
	}
}

// doctor returns the doctor's check of a name, run where the service's disks are visible.
func (s *storage) doctor(name string) e2etest.Check {
	s.T.Helper()
	own := map[string]string{"DRAWBRIDGE_BLOB_URL": "file://" + s.blobs, "TMPDIR": s.spool}
	for name, value := range s.Env {
		if own[name] == "" {
			own[name] = value
		}
	}
	w := &e2etest.Harness{T: s.T, Folder: s.Folder, Program: s.Program, Env: own}
	var found struct{ Checks []e2etest.Check }
	if err := json.Unmarshal([]byte(w.Run("", "doctor", "--json").Stdout), &found); err != nil {
		s.T.Fatal(err)
	}
	for _, one := range found.Checks {
		if one.Name == name {
			return one
		}
	}
	s.T.Fatalf("the doctor does not look at %s", name)
	return e2etest.Check{}
}

// TestFaultFullDisk fills the disk of the bucket, and then that of the temporary
// files, while events are recorded and delivered.
func TestFaultFullDisk(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	s := newStorage(t, r)
	var data e2etest.Demo
	s.JSON(&data, "demo")
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
		if found := s.doctor(disk.name); found.Finding != e2etest.FindingFailed ||
			!strings.Contains(found.Remedy, "The disk is full") {
			t.Errorf("the doctor says %+v", found)
		}
		// The upload would fit now, but the rest is reserved for others.
		if err := os.Truncate(ballast, diskSize-350<<10); err != nil {
			t.Fatal(err)
		}
		s.refuses(certificate, "close-"+disk.name)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if got := s.put(certificate, "while-"+disk.name); got.status != http.StatusCreated {
			t.Errorf("after space was freed, the same call answers %d %s", got.status, got.body)
		}
		if found := s.doctor(disk.name); found.Finding != e2etest.FindingOK {
			t.Errorf("after space was freed, the doctor says %+v", found)
		}
	}
	if got := s.put(draw, "draw"); got.status != http.StatusOK {
		t.Errorf("the draw that was refused twice answers %d %s", got.status, got.body)
	}
	loading.Wait()
	s.check(r, final)
}

// check compares documents and deliveries with the responses.
func (s *storage) check(r *recordingReceiver, final string) {
	s.T.Helper()
	db := s.Open(s.T)
	var stored []struct {
		Application string `db:"application_uid"`
		File        string `db:"file_uid"`
	}
	err := db.SelectContext(s.T.Context(), &stored, `
		SELECT application_uid, file_uid
		  FROM certificate_files JOIN certificates USING (certificate_uid)`)
	if files := s.files(); err != nil || len(stored) != 4 || len(files) != len(stored) {
		s.T.Errorf("%d documents in the database, in the bucket %v (%v)", len(stored), files, err)
	}
	var draws int
	err = db.GetContext(s.T.Context(), &draws, `
		SELECT count(*) FROM disbursements WHERE application_uid = $1 AND status = 'FUNDING_REQUESTED'`,
		final)
	if err != nil || draws != 1 {
		s.T.Errorf("the loan has %d open draws (%v)", draws, err)
	}
	v := visit(s.T, s.server.URL)
	for _, one := range stored {
		path := strings.Replace(at(paths.Document, one.Application), ":file", one.File, 1)
		if size := len(v.get(path)); size < 300<<10 {
			s.T.Errorf("document %s has %d bytes in the console", one.File, size)
		}
	}
	waitUntilSettled(s.T, db, 5*time.Minute)
	found := audit(s.T, db, r, s.load.confirmed())
	if failed := s.load.errors.Load(); failed > 0 {
		s.T.Errorf("%d calls without documents were not confirmed", failed)
	}
	checkConsole(s.Harness, found)
	s.T.Logf("%d documents; %+v", len(stored), found)
}
