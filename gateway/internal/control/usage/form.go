package usage

import (
	"encoding/json"
	"fmt"

	"partidor.dev/partidor/shared/wire"
)

func encode(message any) ([]byte, error) { return json.Marshal(message) }

func decode(data []byte, into *wire.Heartbeat) error {
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	if into.Version != wire.Version {
		return fmt.Errorf("message of version %d, this gateway reads %d", into.Version, wire.Version)
	}
	return nil
}
