package home

import (
	"sync"

	"partidor.dev/partidor/shared/limit"
)

// Book remembers the homes that replies have told of. A key it does not know is at home where the base split says. It is
// bounded: what does not fit is learnt again by one more redirection. Safe for concurrent use.
type Book struct {
	max int

	mu    sync.RWMutex
	homes map[limit.Key]string
}

// NewBook remembers at most max homes.
func NewBook(max int) *Book { return &Book{max: max, homes: map[limit.Key]string{}} }

// Home is where a key is consumed: where it was last said to be, or first.
func (b *Book) Home(key limit.Key, first string) string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if home, ok := b.homes[key]; ok {
		return home
	}
	return first
}

// Learn notes that a region said of a key that its home is elsewhere, or that it is here after all.
func (b *Book) Learn(key limit.Key, home string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.homes[key]; !known && len(b.homes) >= b.max {
		for other := range b.homes { // any one
			delete(b.homes, other)
			break
		}
	}
	b.homes[key] = home
}
