//go:build linux

package pgserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// outsideBase holds the clusters whose own folder, such as one below /root, the user that they run
// as cannot enter.
const outsideBase = "/var/lib/drawbridge"

// locationName is a file in the folder that names where the data is instead.
const locationName = "location"

// errClosed is returned for a folder that the server's user cannot enter.
var errClosed = errors.New("the user that Postgres must run as may not enter its folder")

// account is the user that the server runs as. The zero value is ourselves.
type account struct {
	name     string
	uid, gid int
	// other is set when it is not the user of this process.
	other bool
}

// home is where a cluster lives and as whom it runs.
type home struct {
	folder  string
	account account
}

func (h home) dataDir() string { return filepath.Join(h.folder, "data") }
func (h home) logPath() string { return filepath.Join(h.folder, "postgres.log") }

// clusterName marks the processes of this cluster in their command lines.
func (h home) clusterName() string { return "drawbridge-" + shortHash(h.dataDir()) }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// settle decides where the cluster of dir lives, and stops what still runs there. PostgreSQL
// refuses to run as root, so root gives the data to another user, who must be able to enter its
// folder.
func settle(ctx context.Context, dir string, options Options) (home, error) {
	if os.Geteuid() != 0 {
		return settleAsSelf(ctx, dir)
	}
	outside := outsideFolder(dir)
	recorded, err := os.ReadFile(filepath.Join(dir, locationName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return home{}, fmt.Errorf("reading where the data is: %w", err)
	}
	if strings.TrimSpace(string(recorded)) == outside {
		return settleAsRoot(ctx, outside)
	}
	inside, err := settleAsRoot(ctx, dir)
	if errors.Is(err, errClosed) && !inside.hasData() {
		return moveOut(ctx, dir, outside, options)
	}
	return inside, err
}

// outsideFolder is where dir's data goes outside of dir, the same every time.
func outsideFolder(dir string) string {
	return filepath.Join(outsideBase, "postgres-"+shortHash(dir))
}

func (h home) hasData() bool {
	_, err := os.Stat(h.dataDir())
	return err == nil
}

// moveOut begins a cluster in outside. Data that is already there belonged to an earlier dir of the
// same name, deleted since, and is removed.
func moveOut(ctx context.Context, dir, outside string, options Options) (home, error) {
	abandoned := home{folder: outside}
	if err := abandoned.evict(ctx); err != nil {
		return home{}, err
	}
	if err := os.RemoveAll(outside); err != nil {
		return home{}, fmt.Errorf("removing the data of an earlier %s: %w", dir, err)
	}
	if err := os.MkdirAll(outside, 0o755); err != nil {
		return home{}, fmt.Errorf("finding a place outside %s: %w", dir, err)
	}
	// A strict umask must not close the path to the server's user.
	if err := os.Chmod(outsideBase, 0o755); err != nil {
		return home{}, fmt.Errorf("opening %s: %w", outsideBase, err)
	}
	settled, err := settleAsRoot(ctx, outside)
	if err != nil {
		return home{}, fmt.Errorf("%w; put the project where that user may go, or set DATABASE_URL", err)
	}
	path := filepath.Join(dir, locationName)
	if err := os.WriteFile(path, []byte(outside+"\n"), 0o644); err != nil {
		return home{}, fmt.Errorf("recording where the data is: %w", err)
	}
	if options.Progress != nil {
		options.Progress(fmt.Sprintf("Postgres runs as user %s, who may not enter %s: its data is in %s",
			settled.account.name, dir, outside))
	}
	return settled, nil
}

// settleAsSelf runs the server as the user of this process.
func settleAsSelf(ctx context.Context, dir string) (home, error) {
	settled := home{folder: dir, account: account{uid: os.Geteuid(), gid: os.Getegid()}}
	if err := settled.evict(ctx); err != nil {
		return home{}, err
	}
	owner, exists, err := ownerOf(settled.dataDir())
	if err != nil {
		return home{}, err
	}
	if exists && owner.uid != settled.account.uid {
		return home{}, fmt.Errorf("the data in %s belongs to user %s: run as that user, "+
			"remove the folder, or set DATABASE_URL", dir, owner.name)
	}
	return settled, nil
}

// settleAsRoot gives the folder to the owner of the data in it, else to the
// user "postgres" or "nobody". It fails when that user cannot enter the folder.
func settleAsRoot(ctx context.Context, folder string) (home, error) {
	settled := home{folder: folder}
	if err := settled.evict(ctx); err != nil {
		return home{}, err
	}
	owner, err := settled.heir()
	if err != nil {
		return home{}, err
	}
	settled.account = owner
	// The folder itself stays ours: only the data in it is the server's.
	if err := os.Chmod(folder, 0o755); err != nil {
		return home{}, fmt.Errorf("opening %s to user %s: %w", folder, owner.name, err)
	}
	if !owner.canEnter(ctx, folder) {
		if err := ctx.Err(); err != nil {
			return home{}, err
		}
		return settled, fmt.Errorf("%w: user %s, %s", errClosed, owner.name, folder)
	}
	return settled, nil
}

// heir returns the user for the data: its owner, or an unprivileged one. A copy or a restore that
// root made belongs to root, and is handed over.
func (h home) heir() (account, error) {
	owner, exists, err := ownerOf(h.dataDir())
	if err != nil {
		return account{}, err
	}
	if exists && owner.uid != 0 {
		owner.other = true
		return owner, nil
	}
	if owner, err = unprivileged(); err != nil {
		return account{}, err
	}
	owner.other = true
	if exists {
		err = owner.take(h.dataDir())
	}
	return owner, err
}

// take gives a tree to the account.
func (a account) take(tree string) error {
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, a.uid, a.gid)
	})
	if err != nil {
		return fmt.Errorf("giving %s to user %s: %w", tree, a.name, err)
	}
	return nil
}

func unprivileged() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(found.Uid)
		gid, gidErr := strconv.Atoi(found.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("reading the ids of user %s: %w", found.Username, err)
		}
		return account{name: found.Username, uid: uid, gid: gid}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is no user " +
		"\"postgres\" or \"nobody\": run as another user, or set DATABASE_URL")
}

// ownerOf returns the owner of path; exists is false if there is no such path.
func ownerOf(path string) (owner account, exists bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return account{}, false, nil
	}
	if err != nil {
		return account{}, false, fmt.Errorf("looking for data: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{}, false, fmt.Errorf("reading the owner of %s: not supported here", path)
	}
	owner = account{name: strconv.Itoa(int(stat.Uid)), uid: int(stat.Uid), gid: int(stat.Gid)}
	if found, lookupErr := user.LookupId(owner.name); lookupErr == nil {
		owner.name = found.Username
	}
	return owner, true, nil
}

// canEnter tries to enter the folder, because only the kernel applies every rule: modes, access
// lists, mounts, security modules.
func (a account) canEnter(ctx context.Context, folder string) bool {
	attempt := exec.CommandContext(ctx, "/bin/sh", "-c", `cd -- "$1" && test -r .`, "sh", folder)
	attempt.Dir = "/" // ours may be closed to the account
	a.apply(attempt)
	return attempt.Run() == nil
}

// apply makes the command run as the account.
func (a account) apply(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	if a.other {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}
