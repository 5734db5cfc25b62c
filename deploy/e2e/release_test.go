package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// release is a set of our programs: those of this commit, or of the last release.
type release struct{ dir string }

func (r release) program(name string) string { return filepath.Join(r.dir, name) }

// lastRelease builds the newest release that deploy/releases names, from this repository's own history.
func lastRelease(t *testing.T) release {
	t.Helper()
	list, err := os.ReadFile("../releases")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	version, commit, _ := strings.Cut(lines[len(lines)-1], " ")
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Fatalf("%s is commit %s, which this clone does not have: it is shallow, or no clone. Say: git fetch --unshallow\n%s", version, commit, out)
	}
	source, r := t.TempDir(), release{t.TempDir()}
	top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive := exec.Command("git", "-C", strings.TrimSpace(string(top)), "archive", commit)
	unpack := exec.Command("tar", "-x", "-C", source)
	unpack.Stdin, err = archive.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var archiveSaid, unpackSaid bytes.Buffer // each written by its own program
	archive.Stderr, unpack.Stderr = &archiveSaid, &unpackSaid
	if err := archive.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unpack.Run(); err != nil {
		t.Fatalf("unpack %s: %v\n%s", version, err, &unpackSaid)
	}
	if err := archive.Wait(); err != nil {
		t.Fatalf("archive of %s: %v\n%s", version, err, &archiveSaid)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", r.dir+string(filepath.Separator),
		"partidor.dev/partidor/gateway/cmd/gateway", "partidor.dev/partidor/rebalancer/cmd/rebalancer")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", version, err, out)
	}
	return r
}
