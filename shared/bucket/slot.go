package bucket

import "strings"

// clusterSlots is how many slots a Redis Cluster has.
const clusterSlots = 16384

// keySlot is the cluster slot of a key: CRC-16/XMODEM of its hash tag, or of the whole key without one, modulo the number of
// slots (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec).
func keySlot(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if j := strings.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc) % clusterSlots
}

var crcTable = func() (t [256]uint16) {
	for i := range t {
		c := uint16(i) << 8
		for range 8 {
			if c&0x8000 != 0 {
				c = c<<1 ^ 0x1021
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()
