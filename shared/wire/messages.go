package wire

import "partidor.dev/partidor/shared/limit"

// Version is the major version this code writes, and the v1 of every subject.
const Version = 1

// Header opens every message.
type Header struct {
	Version  int    `json:"v"`
	Region   string `json:"region"`
	Instance string `json:"instance"`
	// Incarnation of the sender's regional Redis, where rights are spoken of; else 0.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Sequence rises by one per message, subject and life of the instance.
	Sequence uint64 `json:"seq"`
	// Started is when the sender's process began, in Unix milliseconds: a new life restarts its counters at zero.
	Started int64 `json:"started"`
	// Part and Parts number the chunks of one report, from 1.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
}

// Usage is what one instance has seen since it started, per key, cumulative, in tokens. A key that is left out has not
// changed since the last report.
type Usage struct {
	Header
	// ElapsedMillis is the monotonic age of the instance when the counters were read: rates come from its differences.
	ElapsedMillis int64      `json:"elapsed_ms"`
	Keys          []KeyUsage `json:"keys"`
	// Dropped counts keys that did not fit the instance's table, cumulative.
	Dropped uint64 `json:"dropped,omitempty"`
}

// KeyUsage is one key's counters.
type KeyUsage struct {
	Tenant   string `json:"t"`
	Route    string `json:"r"`
	Admitted uint64 `json:"a,omitempty"`
	Refused  uint64 `json:"x,omitempty"`
	// Share in force at the instance's last decision, in parts per million; 0 if none was made against Redis.
	Share limit.Share `json:"s,omitempty"`
	// Tokens last seen in the bucket, for people.
	Tokens float64 `json:"k,omitempty"`
	// Sources counts the decisions since the instance's last report of the key, by limit.Source; left out where all came from
	// the store. Refusal is the last one since then. Both are for people: they are said once, and what is lost is lost.
	Sources []uint32 `json:"src,omitempty"`
	Refusal *Refusal `json:"no,omitempty"`
}

// Refusal is one request that was not admitted. Outcome and Source are words of package limit; receivers must expect
// others.
type Refusal struct {
	Outcome string `json:"o"`
	Source  string `json:"src"`
	// Cost of the request, and Tokens that its bucket held, where the source knows.
	Cost   int64   `json:"c"`
	Tokens float64 `json:"k,omitempty"`
	// WaitMillis until the same request would have been admitted if nobody else came.
	WaitMillis int64 `json:"w,omitempty"`
	// Limit is the route of the limit that had no room, where it is another one of the same request.
	Limit string `json:"l,omitempty"`
}

// Heartbeat says that an instance lives, and what it knows.
type Heartbeat struct {
	Header
	// Rules is the newest revision the instance serves by.
	Rules limit.Revision `json:"rules"`
	// Stale tells that the instance serves a snapshot saved earlier.
	Stale bool `json:"stale,omitempty"`
	// Degraded tells that the instance cannot reach its Redis.
	Degraded bool `json:"degraded,omitempty"`
	// Draining tells that the instance is stopping and should no longer be counted.
	Draining bool `json:"draining,omitempty"`
}

// Advice is the rebalancer's word to a region: which shares to give, to whom. The region gives what it holds above its
// floor and above what it needs now, and nothing if the advice is older than one it has followed.
type Advice struct {
	Header
	// Term is the fencing term of the leader that gave the advice; a lower one than seen before is refused.
	Term int64 `json:"term"`
	// Cycle numbers the leader's cycles within its term.
	Cycle int64  `json:"cycle"`
	Moves []Move `json:"moves"`
}

// Move is one give of a region: shares of one key to one other region.
type Move struct {
	Tenant string `json:"t"`
	Route  string `json:"r"`
	To     string `json:"to"`
	// From is the share the rebalancer believed this region holds, Target the one it should have afterwards: a region gives
	// at most its share − Target, so that advice repeated or late never gives twice.
	From   limit.Share `json:"from"`
	Target limit.Share `json:"target"`
	// Amount is the share to give to To.
	Amount limit.Share `json:"amount"`
	// Floor is the share the region must keep.
	Floor  limit.Share `json:"floor"`
	Reason string      `json:"reason,omitempty"`
}

// Changed says that the ledger has something newer than Revision's predecessor: gateways load the increment at once.
type Changed struct {
	Header
	Revision limit.Revision `json:"revision"`
}

// Transfer carries the cumulative rows of one region to another, many keys at once. The incarnations hold for every row in
// it: rows under other incarnations travel in a message of their own.
type Transfer struct {
	Header
	To string `json:"to"`
	// ReceiverIncarnation is the receiver's incarnation as the sender knows it.
	ReceiverIncarnation int64 `json:"to_incarnation"`
	Rows                []Row `json:"rows"`
}

// Row is everything one region has ever given another of one key: cumulative, monotone within an epoch.
type Row struct {
	Tenant string `json:"t"`
	Route  string `json:"r"`
	// Epoch of the row: counters are closed and restarted only under a new one.
	Epoch int64       `json:"e"`
	Share limit.Share `json:"s"`
	// Ride is thousandths of a token that rode along on moved share; Loan is whole tokens lent.
	Ride int64 `json:"ride,omitempty"`
	Loan int64 `json:"loan,omitempty"`
	// Base is the sender's base share of the key, recorded when the key first moved.
	Base limit.Share `json:"b"`
	// Spare is tokens the sender could lend now.
	Spare float64 `json:"k,omitempty"`
}

// Ack answers Transfer after the rows were applied: settled, not kept.
type Ack struct {
	Header
	To                  string   `json:"to"`
	ReceiverIncarnation int64    `json:"to_incarnation"`
	Rows                []AckRow `json:"rows"`
}

// AckRow is what the receiver of a row has applied, cumulative.
type AckRow struct {
	Tenant  string      `json:"t"`
	Route   string      `json:"r"`
	Epoch   int64       `json:"e"`
	Share   limit.Share `json:"s"`
	Ride    int64       `json:"ride,omitempty"`
	Loan    int64       `json:"loan,omitempty"`
	Refused int64       `json:"refused,omitempty"`
	Spare   float64     `json:"k,omitempty"`
}
