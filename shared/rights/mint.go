package rights

import "partidor.dev/partidor/shared/limit"

// Excess is what a leader may mint anew of a region that is away, acting as that region under its next incarnation: the
// region's share as its peers account for it, less the floor, which the region goes on using. answers must be those of
// every other region to that incarnation; with one missing nothing may be minted (R14).
func Excess(base, floor limit.Share, answers []Answer) limit.Share {
	share := base
	for i := range answers {
		share += answers[i].Out.Share - answers[i].In.Share
	}
	return max(share-floor, 0)
}

// MintRow is the row, in the name of the region that is away, by which the peer that gave answer receives minted share. The
// peer books it as a transfer like any other, so that the region finds it in that peer's counters when it returns.
func MintRow(answer Answer, base, minted limit.Share) Row {
	sent := answer.In.Sent
	sent.Share += minted
	return Row{
		From: answer.To, To: answer.From, Incarnation: answer.Receiver, Receiver: answer.Incarnation,
		Epoch: answer.Epoch, Base: base, Sent: sent,
	}
}
