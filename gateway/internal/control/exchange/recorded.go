package exchange

import "partidor.dev/partidor/shared/limit"

// Recorded is what a region noted of a key at its first move: its share before, and the part of that which never leaves it. Neither
// is the configuration's to change any more, so where Redis has lost them they must be known from elsewhere: a region that re-learns
// may use no more than the floor that it kept while it gave.
type Recorded struct{ Base, Floor limit.Share }

// noteMoved remembers that a key has moved, to be told to the rules.
func (x *Exchange) noteMoved(key limit.Key, r Recorded) {
	if x.o.MarkMoved == nil {
		return
	}
	floor, known := x.o.Rules.Load().MovedFloor(key)
	if !known || r.Floor < floor || !x.moved(key) {
		x.news[key] = r
	}
}

func (x *Exchange) tellMoved() {
	if len(x.news) > 0 {
		x.o.MarkMoved(x.news)
		x.news = map[limit.Key]Recorded{}
	}
}
