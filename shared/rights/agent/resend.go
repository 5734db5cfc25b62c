package agent

import (
	"time"

	"partidor.dev/partidor/shared/rights"
)

// noteRow remembers the row that a report left behind; fresh sends it at once.
func (a *Agent) noteRow(now time.Time, k *key, r *rights.Report, fresh bool) {
	q := k.peer(r.Pair.Region)
	if q == nil || r.Phase != rights.Active {
		return
	}
	row := r.Row(a.region)
	if q.pending && q.row.Incarnation == row.Incarnation && q.row.Sent.Share > row.Sent.Share {
		return // an older report overtaken by a newer one
	}
	was := q.pending && q.row == row
	q.row, q.pending = row, k.level.moved && r.Pair.Pending()
	if !q.pending {
		q.tries = 0
		return
	}
	if fresh || !was {
		q.tries = 0
		a.sendRow(now, k, q)
	}
}

func (a *Agent) sendRow(now time.Time, k *key, q *peer) {
	q.sent = now
	a.out.Rows = append(a.out.Rows, RowMessage{Key: k.id, Row: q.row, Spare: k.spare(now, &a.policy)})
}

// resend sends again what no acknowledgement has come for, more and more slowly.
func (a *Agent) resend(now time.Time, k *key) {
	for i := range k.peers {
		q := &k.peers[i]
		if !q.pending {
			continue
		}
		wait := a.policy.Resend
		for range min(q.tries, 20) {
			wait = min(wait*3/2, a.policy.ResendMax)
		}
		if now.Sub(q.sent) >= wait {
			q.tries++
			a.budget(now, k).owe(transferMessages)
			a.sendRow(now, k, q)
		}
	}
}
