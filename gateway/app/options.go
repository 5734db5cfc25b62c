package app

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/gateway/internal/config"
	"partidor.dev/partidor/gateway/internal/hot"
	"partidor.dev/partidor/shared/rulesfile"
	"partidor.dev/partidor/shared/telemetry"
)

// Options are what a caller decides about a gateway. Only the configuration is needed.
type Options struct {
	// ConfigFile is the path of the configuration. It is watched: what can change while running does.
	ConfigFile string
	// Config is the configuration itself, instead of a file.
	Config []byte
	// Hangup asks for a reload of ConfigFile with every value, such as SIGHUP.
	Hangup <-chan os.Signal
	// Version is what /version and telemetry say.
	Version string

	// Listener and AdminListener replace the configured addresses.
	Listener, AdminListener net.Listener
	// NATS are added to the options of the connection, such as nats.InProcessServer.
	NATS []nats.Option
	// Telemetry replaces the gateway's own; the caller shuts it down.
	Telemetry *telemetry.Telemetry
	// Serving is called once requests are accepted, with the addresses of both ports.
	Serving func(data, admin net.Addr)
}

func (o *Options) load() (*config.Config, error) {
	switch {
	case o.ConfigFile != "" && o.Config != nil:
		return nil, errors.New("a configuration is given by file or by text, not both")
	case o.ConfigFile != "":
		return config.Load(o.ConfigFile, hot.Check)
	}
	return config.Parse("configuration", o.Config, hot.Check)
}

// checkRules reads the rules file, so that a mistake in it is found before anything starts.
func checkRules(c *config.Config) error {
	if c.Rules.File == "" {
		return nil
	}
	f, err := rulesfile.Load(c.Rules.File)
	if err != nil {
		return err
	}
	if f.Empty() {
		return fmt.Errorf("%s: is empty", c.Rules.File)
	}
	if _, ok := f.Regions[c.Region]; len(f.Regions) > 0 && !ok {
		return fmt.Errorf("%s: regions: this gateway's region %q is not among them", c.Rules.File, c.Region)
	}
	return nil
}
