package check

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are Kubernetes's own types. An object of the chart is decoded into its type strictly: a field that the type does not have, or
// one of another type, is an error, as it is for kubeconform -strict.
var kinds = map[string]func() any{
	"v1 ConfigMap":                            func() any { return new(corev1.ConfigMap) },
	"v1 Service":                              func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                       func() any { return new(corev1.ServiceAccount) },
	"apps/v1 Deployment":                      func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                     func() any { return new(appsv1.StatefulSet) },
	"batch/v1 Job":                            func() any { return new(batchv1.Job) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policyv1.PodDisruptionBudget) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networkingv1.NetworkPolicy) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networkingv1.Ingress) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(serviceMonitor) },
}

// serviceMonitor is what of the Prometheus Operator's resource the chart uses; its module would bring another hundred packages.
type serviceMonitor struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port, Interval, Path, Scheme string
			Authorization                struct {
				Credentials corev1.SecretKeySelector `json:"credentials"`
			} `json:"authorization"`
			BearerTokenSecret corev1.SecretKeySelector `json:"bearerTokenSecret"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func strict(doc string) (any, error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
		return nil, err
	}
	make := kinds[head.APIVersion+" "+head.Kind]
	if make == nil {
		return nil, errors.New("no type for " + head.APIVersion + " " + head.Kind)
	}
	object := make()
	return object, yaml.UnmarshalStrict([]byte(doc), object)
}

func TestObjectsAreWhatKubernetesKnows(t *testing.T) {
	if _, err := strict("apiVersion: v1\nkind: Service\nspec: {prots: []}\n"); err == nil {
		t.Fatal("a misspelt field passes")
	}
	seen := map[string]bool{}
	for _, name := range examples(t) {
		manifests, err := render(t, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(joined(manifests)) {
			object, err := strict(doc)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, doc)
				continue
			}
			judge(t, name, object)
			var head metav1.TypeMeta
			_ = yaml.Unmarshal([]byte(doc), &head)
			seen[head.APIVersion+" "+head.Kind] = true
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("no example renders a %s", kind)
		}
	}
}

// judge holds what the chart promises of every pod.
func judge(t *testing.T, example string, object any) {
	t.Helper()
	var pod corev1.PodTemplateSpec
	name := ""
	switch o := object.(type) {
	case *appsv1.Deployment:
		pod, name = o.Spec.Template, o.Name
	case *appsv1.StatefulSet:
		pod, name = o.Spec.Template, o.Name
	case *batchv1.Job:
		pod, name = o.Spec.Template, o.Name
	case *corev1.ConfigMap:
		for key, text := range o.Data {
			if regexp.MustCompile(`(?i)password:|postgres://[^/]*:[^/]*@`).MatchString(text) {
				t.Errorf("%s: %s of %s holds a secret", example, key, o.Name)
			}
		}
		return
	default:
		return
	}
	if s := pod.Spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Errorf("%s: %s may run as root", example, name)
	}
	if a := pod.Spec.AutomountServiceAccountToken; a == nil || *a {
		t.Errorf("%s: %s is given a token of the cluster's API", example, name)
	}
	for _, c := range pod.Spec.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: container %s of %s is not confined", example, c.Name, name)
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				t.Errorf("%s: %s has a secret in its environment", example, c.Name)
			}
		}
	}
}

// The configurations inside the ConfigMaps are what the programs accept.
func TestProgramsAcceptTheirConfiguration(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./gateway/cmd/gateway", "./rebalancer/cmd/rebalancer", "./deploy/keys")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made := t.TempDir()
	if out, err := exec.Command(filepath.Join(bin, "keys"), "-dir", made, "-acl", "../../redis/users.acl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secret := regexp.MustCompile(`/run/secrets/[a-z0-9/.-]*/([a-z.]+)`)
	checked := 0
	for _, example := range examples(t) {
		manifests, err := render(t, example)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range documents(joined(manifests)) {
			object, err := strict(doc)
			config, ok := object.(*corev1.ConfigMap)
			if err != nil || !ok {
				continue
			}
			for _, program := range []string{"gateway", "rebalancer"} {
				text, ok := config.Data[program+".yaml"]
				if !ok {
					continue
				}
				dir := t.TempDir()
				for _, m := range secret.FindAllStringSubmatch(text, -1) {
					write(t, filepath.Join(dir, m[1]), secretText(t, made, m[1]))
				}
				path := filepath.Join(dir, program+".yaml")
				write(t, path, secret.ReplaceAllString(text, dir+"/$1"))
				// A database that is away is nothing that a configuration can help.
				out, err := exec.Command(filepath.Join(bin, program), "-config", path, "-check-config").CombinedOutput()
				away := strings.Count(string(out), ".yaml:") == 1 && strings.Contains(string(out), "connection refused")
				if err != nil && !away {
					t.Errorf("%s: %s of %s: %v\n%s", example, program, config.Name, err, out)
				}
				checked++
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d configurations found", checked)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secretText is a secret that can be read as what it is for, one of those that day one makes.
func secretText(t *testing.T, made, name string) string {
	t.Helper()
	file := map[string]string{"ca.crt": "ca.crt", "tls.crt": "nats-eu.crt", "tls.key": "nats-eu.key", "nats.nk": "gateway-eu.nk"}[name]
	switch {
	case name == "url":
		return "postgres://partidor@127.0.0.1:1/partidor?connect_timeout=1"
	case file == "":
		return "secret"
	}
	data, err := os.ReadFile(filepath.Join(made, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
