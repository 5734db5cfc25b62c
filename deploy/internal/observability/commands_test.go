package observability

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands that the runbook tells to type exist, with the flags that it uses.
func TestCommandsOfTheRunbookExist(t *testing.T) {
	ctl := filepath.Join(t.TempDir(), "partidorctl")
	if out, err := exec.Command("go", "build", "-o", ctl, "partidor.dev/partidor/rebalancer/cmd/partidorctl").CombinedOutput(); err != nil {
		t.Fatalf("build partidorctl: %v\n%s", err, out)
	}
	verb, flag := regexp.MustCompile(`^[a-z][a-z-]*$`), regexp.MustCompile(`--[a-z-]+`)
	found := 0
	for _, m := range regexp.MustCompile("`partidorctl ([^`]+)`").FindAllStringSubmatch(read(t, "deploy/runbooks/alerts.md"), -1) {
		command, _, _ := strings.Cut(m[1], " | ")
		var words []string
		for _, w := range strings.Fields(command) {
			if !verb.MatchString(w) {
				break
			}
			words = append(words, w)
		}
		out, err := exec.Command(ctl, append(words, "--help")...).CombinedOutput()
		help := string(out)
		// Arguments in small letters, such as the name of a parameter, are no part of the usage.
		if len(words) == 4 && words[2] == "set" {
			words = words[:3]
		}
		if err != nil || !strings.Contains(help, "partidorctl "+strings.Join(words, " ")) {
			t.Errorf("partidorctl %s: %v\n%s", command, err, help)
		}
		for _, f := range flag.FindAllString(command, -1) {
			if !strings.Contains(help, f) {
				t.Errorf("partidorctl %s: there is no %s", command, f)
			}
		}
		found++
	}
	if found < 10 {
		t.Errorf("only %d commands found", found)
	}
}
