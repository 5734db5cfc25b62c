package collect

import (
	"encoding/json"
	"fmt"

	"partidor.dev/partidor/shared/wire"
)

// maxBytes bounds a message before it is read.
const maxBytes = 1 << 20

func decode(data []byte, into any, h *wire.Header) error {
	if len(data) > maxBytes {
		return fmt.Errorf("message of %d bytes, at most %d", len(data), maxBytes)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	if h.Version != wire.Version {
		return fmt.Errorf("version %d, this code reads %d", h.Version, wire.Version)
	}
	return nil
}
