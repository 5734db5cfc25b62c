package app

import (
	"runtime"
	"runtime/debug"

	"partidor.dev/partidor/gateway/internal/config"
)

// Build is what this program was built from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Region   string `json:"region,omitempty"`
	Instance string `json:"instance,omitempty"`
}

// BuildOf reads what the toolchain noted in the program.
func BuildOf(version string) Build {
	b := Build{Version: version, Go: runtime.Version()}
	if b.Version == "" {
		b.Version = "development"
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

func version(v string, c *config.Config) Build {
	b := BuildOf(v)
	b.Region, b.Instance = c.Region, c.Instance
	return b
}
