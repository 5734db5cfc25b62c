package bucket

import "time"

// What other packages need in order to run scripts of their own over the same buckets.

// Ask is l as lua/prelude.lua's parse_ask reads it, under a generation of sources: see Redis.SetGeneration.
func (l *Limit) Ask(generation int64) string { return string(appendAsk(nil, l, generation)) }

// ParseNumbers reads the `rule` field of a bucket in Redis.
func ParseNumbers(text string) (Numbers, error) { return parseNumbers(text, ' ') }

// Span is how long what was used counts at most: the window of a window algorithm (of a month, 31 days), otherwise the time
// to fill.
func (n *Numbers) Span() time.Duration { return time.Duration(n.fill() * float64(time.Millisecond)) }

// Slots is how many slots a Redis Cluster has, Slot the one that a key belongs to.
const Slots = clusterSlots

// Slot of a key: its hash tag's, or the whole key's without one.
func Slot(key string) int { return keySlot(key) }

// Tidy is a level after a subtraction, on the step that rounding has left it a hair away from, as every charge leaves it.
func Tidy(tokens float64) float64 { return tidy(tokens) }
