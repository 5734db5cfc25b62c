package redisstore

import (
	"strconv"
	"sync"

	"partidor.dev/partidor/shared/bucket"
)

// records names the region's record beside a bucket. Scripts read both, so in a cluster there is one record per slot.
type records struct {
	cluster bool
	once    sync.Once
	tags    [bucket.Slots]string
}

const recordKey = "rl:@region"

func (r *records) key(bucketKey string) string {
	if !r.cluster {
		return recordKey
	}
	r.once.Do(r.fill)
	return recordKey + ":{" + r.tags[bucket.Slot(bucketKey)] + "}"
}

// fill finds a short hash tag for every slot: the smallest number, base 36, that falls into it.
func (r *records) fill() {
	for n, left := uint64(0), bucket.Slots; left > 0; n++ {
		tag := strconv.FormatUint(n, 36)
		if slot := bucket.Slot(tag); r.tags[slot] == "" {
			r.tags[slot] = tag
			left--
		}
	}
}
