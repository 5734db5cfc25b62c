package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// parse reads the Dockerfile with BuildKit's own parser.
func parse(t *testing.T) []*parser.Node {
	t.Helper()
	f, err := os.Open("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	result, err := parser.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range result.Warnings {
		t.Error(w.Short)
	}
	return result.AST.Children
}

// words are an instruction's arguments.
func words(n *parser.Node) (list []string) {
	for a := n.Next; a != nil; a = a.Next {
		list = append(list, a.Value)
	}
	return list
}

// What both images promise: nothing but a program on distroless, an unprivileged user, a health check, labels.
func TestImages(t *testing.T) {
	var stage string
	said := map[string]map[string]string{}
	for _, n := range parse(t) {
		name := strings.ToUpper(n.Value)
		if name == "FROM" {
			args := words(n)
			stage = args[len(args)-1]
			said[stage] = map[string]string{"FROM": args[0]}
			continue
		}
		if stage != "" {
			said[stage][name] += n.Original + "\n"
		}
	}
	for _, image := range []string{"gateway", "rebalancer"} {
		s := said[image]
		if s == nil {
			t.Errorf("there is no stage %s", image)
			continue
		}
		if !strings.HasPrefix(s["FROM"], "gcr.io/distroless/static-") {
			t.Errorf("%s is built on %s", image, s["FROM"])
		}
		for instruction, want := range map[string]string{
			"USER": "65532:65532", "HEALTHCHECK": `healthy", "http://127.0.0.1:9`, "ENTRYPOINT": `["/` + image + `"]`, "CMD": "/etc/partidor/" + image + ".yaml", "COPY": "--from=build",
		} {
			if !strings.Contains(s[instruction], want) {
				t.Errorf("%s: %s is %q, must hold %q", image, instruction, s[instruction], want)
			}
		}
		for _, label := range []string{"title", "description", "version", "licenses", "revision"} {
			if !strings.Contains(s["LABEL"], "org.opencontainers.image."+label+"=") {
				t.Errorf("%s has no label %s", image, label)
			}
		}
		for _, no := range []string{"RUN", "ADD", "VOLUME"} {
			if s[no] != "" {
				t.Errorf("%s: %s", image, s[no])
			}
		}
	}
}

// The programs in the images are those of `make build`: the same flags. What the build stage copies suffices for all of them. That
// two builds give the same bytes is shown by `make image-test`, which takes minutes.
func TestBuildIsTheMakefiles(t *testing.T) {
	var run string
	for _, n := range parse(t) {
		if strings.EqualFold(n.Value, "RUN") && strings.Contains(n.Original, "go build") {
			run = n.Original
		}
	}
	makefile := read(t, "../../Makefile")
	for _, part := range []string{"CGO_ENABLED=0", "-trimpath", "-s -w -X main.version=$"} {
		if !strings.Contains(run, part) {
			t.Errorf("the image's build has no %q: %s", part, run)
		}
		if !strings.Contains(makefile, part) {
			t.Errorf("the Makefile's build has no %q", part)
		}
	}
	dir := filepath.Join(t.TempDir(), "src")
	copied(t, dir)
	for module, programs := range map[string][]string{"gateway": {"./cmd/gateway"}, "rebalancer": {"./cmd/rebalancer", "./cmd/partidorctl"}} {
		for _, p := range programs {
			if !strings.Contains(run, p) {
				t.Errorf("the image's build does not build %s: %s", p, run)
			}
		}
		cmd := exec.Command("go", append([]string{"list", "-C", module, "-deps"}, programs...)...) // finds every package and embedded file
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s of what the image copies: %v\n%s", module, err, said)
		}
	}
}

// copied puts what the Dockerfile's build stage copies into dir.
func copied(t *testing.T, dir string) {
	t.Helper()
	var sources []string
	for _, n := range parse(t) {
		if args := words(n); strings.EqualFold(n.Value, "COPY") && len(n.Flags) == 0 {
			for _, s := range args[:len(args)-1] {
				if !regexp.MustCompile(`go\.(mod|sum)$`).MatchString(s) || !strings.Contains(s, "/") {
					sources = append(sources, s)
				}
			}
		}
	}
	if !slices.Contains(sources, "gateway") {
		t.Fatalf("the build stage copies %v", sources)
	}
	for _, s := range sources {
		to := filepath.Join(dir, s)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-r", filepath.Join("../..", s), to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
