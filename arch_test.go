// Package partidor_test holds the rules that keep the parts of Partidor apart. The compiler cannot know them, so they are
// read off the import graph and the files.
package partidor_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "partidor.dev/partidor"

// pkg is what `go list -json` tells of one package.
type pkg struct {
	ImportPath, Name, Doc, Dir string
	Imports, Deps              []string
	GoFiles                    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Doc,Dir,Imports,Deps,GoFiles", "work")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var list []pkg
	for dec := json.NewDecoder(out); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("only %d packages listed", len(list))
	}
	return list
}

// within tells whether path is one of trees (below root) or inside it.
func within(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		tree = root + "/" + tree
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

func ours(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// standard tells a package of the standard library: its first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// A rule says of every package in trees which packages it may not use, and why.
type rule struct {
	trees []string
	// deep looks at everything a package is built from, not only at what it names itself.
	deep   bool
	except []string
	bad    func(path string) bool
	why    string
}

func prefixed(prefixes ...string) func(string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
	}
}

var (
	inputOutput = prefixed("github.com/redis/go-redis", "github.com/nats-io", "github.com/jackc/pgx", "net", "net/http", "os", "database/sql")
	rules       = []rule{
		{trees: []string{"lua"}, bad: ours,
			why: "lua is the bottom: it imports nothing of ours"},
		{trees: []string{"shared"}, deep: true, bad: func(p string) bool { return within(p, "gateway", "rebalancer", "deploy") },
			why: "arrows point one way: services -> shared -> lua"},
		{trees: []string{"gateway"}, deep: true, bad: func(p string) bool { return within(p, "rebalancer", "deploy") },
			why: "gateway and rebalancer meet in wire and in SQL only"},
		{trees: []string{"rebalancer"}, deep: true, bad: func(p string) bool { return within(p, "gateway", "deploy") },
			why: "gateway and rebalancer meet in wire and in SQL only"},
		{trees: []string{"gateway/internal/hot"}, deep: true,
			bad: func(p string) bool {
				return within(p, "gateway/internal/control") || prefixed("github.com/nats-io", "github.com/jackc/pgx")(p)
			},
			why: "the request path touches neither NATS nor the database nor the background"},
		{trees: []string{"shared/limit"}, deep: true, bad: func(p string) bool { return !standard(p) && p != root+"/shared/limit" },
			why: "the words everybody speaks depend on the standard library only"},
		{trees: []string{"shared/limit", "shared/rights", "rebalancer/internal/plan"}, except: []string{"shared/rights/redisstore", "shared/rights/modelcheck/rightscheck"}, bad: inputOutput,
			why: "arithmetic and policy do no I/O: the simulator runs them"},
		{trees: []string{"gateway", "rebalancer", "shared", "lua"}, deep: true, except: []string{"shared/testenv"},
			bad: func(p string) bool { return within(p, "shared/testenv") || p == "testing" },
			why: "testing is for tests only"},
		{trees: []string{"gateway", "rebalancer", "shared", "lua", "deploy"}, deep: true, except: []string{"shared/testenv/incontainer"},
			bad: prefixed("github.com/testcontainers", "github.com/moby", "github.com/docker"),
			why: "a client of Docker is linked by the program that needs it only"},
		{trees: []string{"gateway", "rebalancer", "shared", "lua", "deploy/demo", "deploy/e2e"},
			bad: prefixed("github.com/go-redis/redis_rate", "github.com/throttled/throttled", "github.com/gubernator-io/gubernator"),
			why: "peers' libraries are for deploy/bench only"},
	}
)

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasSuffix(p.ImportPath, "test") && strings.Contains(p.Doc, "test") {
			continue // support for tests, such as fakes with a package of their own
		}
		for _, r := range rules {
			if !within(p.ImportPath, r.trees...) || within(p.ImportPath, r.except...) {
				continue
			}
			used := p.Imports
			if r.deep {
				used = p.Deps
			}
			for _, u := range used {
				if r.bad(u) {
					t.Errorf("%s uses %s: %s", p.ImportPath, u, r.why)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		for _, word := range []string{"util", "utils", "common", "helper", "helpers", "manager"} {
			if p.Name == word {
				t.Errorf("%s: %q says nothing about what is in it", p.ImportPath, word)
			}
		}
	}
}

func TestTopLevelIsTheDesigns(t *testing.T) {
	known := []string{".ci", ".git", ".github", ".cache", "bin", "lua", "shared", "gateway", "rebalancer", "deploy", "terraform"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(known, e.Name()) {
			t.Errorf("folder %s is not part of the layout in ARCHITECTURE.md", e.Name())
		}
	}
}

// The habits of the house that a reader can check line by line.
func TestFilesKeepTheHabits(t *testing.T) {
	const maxLines = 400
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "node_modules", "testdata"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || path == "arch_test.go" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(data)
		if lines := strings.Count(text, "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, at most %d: a file holds one idea", path, lines, maxLines)
		}
		if strings.HasSuffix(path, "_test.go") {
			checkTestFile(t, path, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkTestFile(t *testing.T, path, text string) {
	t.Helper()
	// Inside a synctest bubble a sleep takes no time and is how one says "later".
	bubble := strings.Contains(text, `"testing/synctest"`)
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		switch line := lines.Text(); {
		case strings.Contains(line, "t.Skip"), strings.Contains(line, "testing.Short()"):
			t.Errorf("%s:%d: a test is never skipped: a missing server is a failure", path, n)
		case strings.Contains(line, "time.Sleep(") && !bubble:
			t.Errorf("%s:%d: a test waits for a signal or a deadline, it does not sleep", path, n)
		}
	}
}
