// Package health asks a program on this machine whether it lives, for images that hold nothing else that could ask.
package health

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const within = 2 * time.Second

// Ask is nil if url answers 200 in time.
func Ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s answers %s", url, resp.Status)
	}
	return nil
}
