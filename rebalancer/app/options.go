package app

import (
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"partidor.dev/partidor/rebalancer/internal/config"
	sharedconfig "partidor.dev/partidor/shared/config"
	"partidor.dev/partidor/shared/rulesfile"
)

// Options of Run.
type Options struct {
	// ConfigFile is the path of the configuration; or Config its text, for callers that make it up.
	ConfigFile string
	Config     []byte
	Version    string
	// LogOutput takes the log. Default: standard error.
	LogOutput io.Writer

	// NATS are added to the connection's options, such as nats.InProcessServer.
	NATS []nats.Option
	// Listener replaces the configured address of the admin port.
	Listener net.Listener
	// Cycle replaces the parameter, below whose bounds a demonstration's cycle is.
	Cycle time.Duration
}

func (o *Options) load() (*config.Config, error) {
	c := new(config.Config)
	if o.Config == nil {
		if err := sharedconfig.Load(o.ConfigFile, c); err != nil {
			return nil, err
		}
	} else {
		doc, err := sharedconfig.Parse("config", o.Config)
		if err != nil {
			return nil, err
		}
		if err := doc.Decode(c); err != nil {
			return nil, err
		}
	}
	if c.RulesFile != "" {
		f, err := rulesfile.Load(c.RulesFile)
		if err != nil {
			return nil, err
		}
		if len(f.Regions) == 0 {
			return nil, fmt.Errorf("%s: regions: missing: the rebalancer divides limits among them", c.RulesFile)
		}
	}
	return c, nil
}

// Check judges a configuration and the rules file it names, as Run would before it starts anything.
func Check(o Options) error {
	c, err := o.load()
	if err != nil {
		return err
	}
	_, err = access(c)
	return err
}
