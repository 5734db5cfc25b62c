package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

const chartDir = "../partidor"

// examples are the values that the chart's documentation shows, by name.
func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(chartDir + "/ci/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

// render does what `helm template partidor CHART --namespace partidor -f EXAMPLE --set …` does, and returns the manifests by
// template.
func render(t *testing.T, example string, set ...string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ReadValuesFile(filepath.Join(chartDir, "ci", example+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set {
		if err := strvals.ParseInto(s, values); err != nil {
			t.Fatal(err)
		}
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}
	given, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "partidor", Namespace: "partidor", IsInstall: true, Revision: 1}, caps)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, given)
}

// joined is all manifests as one text, in the order of their templates.
func joined(manifests map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for _, doc := range documents(manifests[name]) {
			fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", name, doc)
		}
	}
	return b.String()
}

func documents(text string) (docs []string) {
	for _, doc := range strings.Split("\n"+text, "\n---") {
		if doc = strings.Trim(doc, "\n"); strings.TrimSpace(doc) != "" {
			docs = append(docs, doc)
		}
	}
	return docs
}

// Every example renders as it did. UPDATE=1 makes what comes out now the golden text, and notes which chart it is of: that note is
// what `make check`, which has no Helm, compares.
func TestGolden(t *testing.T) {
	for _, name := range examples(t) {
		manifests, err := render(t, name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path, got := filepath.Join(chartDir, "ci/golden", name+".golden"), joined(manifests)
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s renders otherwise than before; see what differs with: make chart-test UPDATE=1; git diff deploy/helm", name)
		}
	}
}

// What must be refused, and with which words: those of faults.json are also Terraform's and the programs'.
func TestRefusals(t *testing.T) {
	data, err := os.ReadFile("../faults.json")
	if err != nil {
		t.Fatal(err)
	}
	var faults []struct {
		Words string
		Chart struct{ Example, Set string }
	}
	if err := json.Unmarshal(data, &faults); err != nil {
		t.Fatal(err)
	}
	type refusal struct{ example, set, want string }
	var refusals []refusal
	for _, f := range faults {
		if f.Chart.Example != "" {
			refusals = append(refusals, refusal{f.Chart.Example, f.Chart.Set, f.Words})
		}
	}
	if len(refusals) < 10 {
		t.Fatalf("faults.json has only %d faults of the chart", len(refusals))
	}
	for _, c := range append(refusals, []refusal{
		{"region", "region.name=", "region.name: must not be empty"},
		{"region", "gateway.replicas=-1", "gateway.replicas"},
		{"region", "gatewy.replicas=1", "gatewy"},
		{"region", "gateway.disruption.maxUnavailable=3", "gateway.disruption.maxUnavailable: 3, must be less than the 3 replicas"},
		{"region", "redis.inCluster.maxmemory=much", "redis.inCluster.maxmemory"},
		{"region", "gateway.adminTokenSecret.name=", "gateway.adminTokenSecret.name: must not be empty"},
		{"region", "postgres.urlSecret.name=", "postgres.urlSecret.name: must not be empty"},
		{"managed", "nats.credentialsSecret.name=x", "nats.nkeySecret: give it or credentialsSecret"},
		{"hub", "nats.inCluster.rebalancerKey=", "nats.inCluster.rebalancerKey: must not be empty"},
		{"hub", "controlPlane.regions[1].name=us", "nats.inCluster.leafKeys.us: must not be empty"},
		{"hub", "region.enabled=true", "make them two releases"},
		{"leaf", "nats.inCluster.gatewayKey=", "nats.inCluster.gatewayKey: must not be empty"},
		{"leaf", "nats.inCluster.hub=", "nats.inCluster.hub: must not be empty"},
		{"leaf", "nats.inCluster.gatewayKey=SUAM", "nats.inCluster.gatewayKey"},
		{"control-plane", "controlPlane.regions[0].baseShare=-1", "baseShare"},
		{"control-plane", "nats.mode=none", "nats.mode: must not be none"},
		{"control-plane", "controlPlane.tokens[0].role=viewer", "one with role operator is needed"},
	}...) {
		if _, err := render(t, c.example, c.set); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "/", "."), c.want) {
			t.Errorf("%s: %v, want it to hold %q", c.set, err, c.want)
		}
	}
}
