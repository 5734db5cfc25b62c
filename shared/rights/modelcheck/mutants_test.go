package modelcheck

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var only = flag.String("mutant", "", "search only mutants whose rule and name contain this")

var long = flag.Bool("long", false, "search the long scopes and every mutant, which takes minutes")

// edit replaces one piece of a source file, which must occur exactly once.
type edit struct{ file, old, new string }

// keepsLevel makes a refill leave what lies above the capacity, which otherwise hides a clamp that is missing elsewhere.
var keepsLevel = edit{"../../bucket/slice.go", "		return Level{s.Capacity, now}\n	}\n	if now", "		return Level{l.Tokens, now}\n	}\n	if now"}

// mutants each leave one rule out. A mutant of the machine is made by edits, one of its surroundings by broken; scope is
// where it must be caught.
var mutants = []struct {
	rule, name, scope string
	edits             []edit
	broken            Environment
	quick             bool // part of every test run
}{
	{rule: "R1", name: "refill not settled before share grows", scope: "probe moves",
		edits: []edit{{"../apply.go", "s.Settle(now)\n	s.credit(now, share)", "s.credit(now, share)"}}},
	{rule: "R1", name: "refill not settled before an acknowledgement lifts a hold", scope: "probe moves",
		edits: []edit{{"../apply.go", "s.Settle(now)\n	refused", "refused"}}},
	{rule: "R2", name: "the giver is not debited", scope: "probe shares", quick: true,
		edits: []edit{{"../give.go", "	s.Share -= amount\n", ""}}},
	{rule: "R2", name: "the giver's tokens are not clipped", scope: "probe shares",
		edits: []edit{keepsLevel, {"../level.go", "{ s.Tokens = min(s.Tokens, s.Effective()) }", "{}"}}},
	{rule: "R2", name: "more rides along than was clipped", scope: "probe shares",
		edits: []edit{{"../give.go", "math.Floor(clipped*Milli)", "math.Floor((clipped+1)*Milli)"}}},
	{rule: "R2", name: "share is given although loans are out against it", scope: "probe three",
		edits: []edit{{"../give.go", "s.Floor+held", "s.Floor+0*held"}}},
	{rule: "R2", name: "gives reach into the floor", scope: "probe lost, floor",
		edits: []edit{{"../give.go", "max(keep, s.Floor+held)", "max(keep, held)"}}},
	{rule: "R3", name: "a loan is not held", scope: "probe moves", quick: true,
		edits: []edit{{"../level.go", "Held: s.Held()", "Held: 0"}}},
	{rule: "R3", name: "loans reach into the floor", scope: "probe lost, floor",
		edits: []edit{{"../give.go", " - s.capacity(s.Floor)\n", "\n"}}},
	{rule: "R4", name: "rows are applied as deltas", scope: "probe moves",
		edits: []edit{{"../apply.go", "max(row.Sent.Loan-p.In.Loan, 0)", "row.Sent.Loan"}, {"../apply.go", "r.Loan > p.Out.Loan || ", ""}}},
	{rule: "R4", name: "an older row takes the counters back", scope: "probe rows kept",
		edits: []edit{{"../apply.go", "max(row.Sent.Share-p.In.Share, 0)", "max(row.Sent.Share-p.In.Share, 0)\n	p.In.Share = min(p.In.Share, row.Sent.Share)"}}},
	{rule: "R5", name: "grown share arrives full", scope: "probe moves", quick: true,
		edits: []edit{{"../apply.go", "s.credit(now, share)\n", "s.credit(now, share)\n	s.Tokens += s.capacity(share)\n"}}},
	{rule: "R6", name: "excess of a loan is kept and acknowledged", scope: "probe moves",
		edits: []edit{keepsLevel, {"../apply.go", "min(loan, whole(s.Effective()-s.Tokens))", "loan"}, {"../level.go", "{ s.Tokens = min(s.Tokens, s.Effective()) }", "{}"}}},
	{rule: "R6", name: "what is kept is refused as well", scope: "probe moves",
		edits: []edit{{"../apply.go", "p.In.Refused += loan - kept", "p.In.Refused += loan"}}},
	{rule: "R6", name: "a refusal comes back again with every acknowledgement", scope: "probe moves",
		edits: []edit{{"../apply.go", "max(r.Refused-p.Acked.Refused, 0)", "r.Refused"}}},
	{rule: "R6", name: "acknowledged on receipt", scope: "probe moves", broken: AckOnReceipt, quick: true},
	{rule: "R7", name: "rows of a former life of the sender are accepted", scope: "probe lost",
		edits: []edit{{"../message.go", "case incarnation < known, receiver < own:", "case receiver < own:"}}},
	{rule: "R7", name: "acknowledgements of a former life are accepted", scope: "probe lost",
		edits: []edit{{"../apply.go", "if v := meet(ack.Incarnation, p.Incarnation, ack.Receiver, s.Incarnation); v != Applied {\n		return v\n	}\n	if ack.Epoch", "if ack.Epoch"}}},
	{rule: "R7", name: "rows are accepted while re-learning", scope: "probe lost",
		edits: []edit{{"../apply.go", "	if s.Phase != Active {\n		return Ack{}, Inactive", "	if s.Phase == Fenced {\n		return Ack{}, Inactive"}}},
	{rule: "R8", name: "the number is used again", scope: "probe lost", broken: ReusedNumber},
	{rule: "R8", name: "the tokens of an older copy are used", scope: "probe copy", quick: true,
		edits: []edit{{"../recover.go", "bucket.Level{At:", "bucket.Level{Tokens: s.Tokens, At:"}}},
	{rule: "R8", name: "an older copy goes on", scope: "probe copy", broken: OldCopy, quick: true},
	{rule: "R9", name: "a peer answers without voiding", scope: "probe lost",
		edits: []edit{{"../recover.go", "			p.Acked.Sent = p.Out\n			p.Incarnation = v.Incarnation\n", "			p.Acked.Sent = p.Out\n"}}},
	{rule: "R9", name: "a peer restarts its counters when it voids", scope: "probe lost", quick: true,
		edits: []edit{{"../recover.go", "			p.Acked.Sent = p.Out\n", "			p.Out, p.In, p.Acked = Sent{}, Received{}, Received{}\n"}}},
	{rule: "R9", name: "a re-learning region answers", scope: "probe both lost",
		edits: []edit{{"../recover.go", "	if s.Phase != Active {\n		return Answer{}, false\n	}\n	return Answer{", "	return Answer{"}}},
	{rule: "R10", name: "active without an answer", scope: "probe lost", quick: true,
		edits: []edit{{"../recover.go", "if p == nil || !p.Answered {\n			return false\n		}", "if p == nil {\n			continue\n		}"}}},
	{rule: "R10", name: "what had been given is forgotten", scope: "probe lost",
		edits: []edit{{"../recover.go", "p.Out = a.In.Sent", "p.Out = Sent{}"}}},
	{rule: "R10", name: "loans received are forgotten", scope: "probe lost",
		edits: []edit{{"../recover.go", "p.In = Received{Sent: a.Out, Refused: a.Acked.Refused}", "p.In = Received{Sent: a.Out, Refused: a.Acked.Refused}\n	p.In.Loan = 0"}}},
	{rule: "R10", name: "active without a lease", scope: "probe fence twice", broken: NoLease},
	{rule: "R11", name: "the base share is used while re-learning", scope: "probe lost", quick: true,
		edits: []edit{{"../recover.go", "s.Share, s.Waiting = s.Floor, 0", "s.Share, s.Waiting = s.Base, 0"}}},
	{rule: "R12", name: "decided before former lives are void", scope: "probe both lost", broken: DecideEarly},
	{rule: "R12", name: "decided by an account that is not final", scope: "probe both lost, floor",
		edits: []edit{{"../decide.go", "if region != own && ", "if false && "}}},
	{rule: "R12", name: "the amount is nothing, whatever the floors", quick: true, scope: "probe both lost, floor",
		edits: []edit{{"../decide.go", "account - max(s.Floor, min(account, account-lack))", "0 * account"}}},
	{rule: "R12", name: "the answer of a former life is kept beside the decision", scope: "probe both lost",
		edits: []edit{{"../recover.go", "*p = Pair{Region: p.Region, Incarnation: v.Incarnation, Epoch: p.Epoch}", "p.Incarnation = v.Incarnation"}}},
	{rule: "R13", name: "resumed by a voter that knows better", scope: "probe resume", broken: ResumeVoid, quick: true},
	{rule: "R14", name: "agreed while its own answer keeps the lease alive", scope: "probe resume", broken: AgreeGranting, quick: true},
	{rule: "R13", name: "a fenced region uses its share", scope: "probe fence",
		edits: []edit{{"../recover.go", "	s.Share = min(s.Share, s.Floor)\n", ""}}},
	{rule: "R13", name: "a fenced region accepts rows", scope: "probe fence",
		edits: []edit{{"../apply.go", "	if s.Phase != Active {\n		return Ack{}, Inactive", "	if s.Phase == Relearning {\n		return Ack{}, Inactive"}}},
	{rule: "R14", name: "minted before the lease is over", scope: "probe fence", broken: MintEarly, quick: true},
	{rule: "R14", name: "two take the same number", scope: "probe fence, two leaders", broken: SharedNumber},
	{rule: "R14", name: "minted without one region's answer", scope: "probe three fenced", broken: MintMissing},
	{rule: "R14", name: "the floor is minted too", scope: "probe fence, floor",
		edits: []edit{{"../mint.go", "max(share-floor, 0)", "max(share, 0)"}}},
	{rule: "R15", name: "a new base split replaces the recorded one", scope: "probe base",
		edits: []edit{{"../level.go", "s.Numbers, s.Revision = numbers, revision", "s.Numbers, s.Revision, s.Base = numbers, revision, numbers.Base"}}},
	{rule: "R15", name: "a new base split replaces the share", scope: "probe base", quick: true,
		edits: []edit{{"../level.go", "s.Numbers, s.Revision = numbers, revision", "s.Numbers, s.Revision, s.Share = numbers, revision, numbers.Base"}}},
	{rule: "R16", name: "a smaller rule does not clamp", scope: "probe rule",
		edits: []edit{keepsLevel, {"../level.go", "{ s.Tokens = min(s.Tokens, s.Effective()) }", "{}"}}},
	{rule: "R16", name: "a larger rule fills the bucket", scope: "probe rule raised",
		edits: []edit{{"../level.go", "	s.Numbers, s.Revision = numbers, revision\n", "	s.Numbers, s.Revision = numbers, revision\n	s.Tokens = s.Effective()\n"}}},
	{rule: "R16", name: "a new rule counts for time before it", scope: "probe rule raised",
		edits: []edit{{"../level.go", "	s.Settle(now)\n	s.Numbers", "	s.Numbers"}}},
	{rule: "R16", name: "an older revision comes back", scope: "probe rule", quick: true,
		edits: []edit{{"../level.go", "if !revision.Newer(s.Revision) {", "if revision == s.Revision {"}}},
	{rule: "R16", name: "the overlap ends while loans are out", scope: "probe rule", broken: OverlapEarly, quick: true},
}

// TestMutantsAreCaught leaves out one rule at a time, in the machine's own source, and wants the search to find the harm.
func TestMutantsAreCaught(t *testing.T) {
	if raced {
		return
	}
	dir := t.TempDir()
	slots := make(chan struct{}, 2)
	var wg sync.WaitGroup
	for i := range mutants {
		m := &mutants[i]
		if *only == "" && !m.quick && !*long || !strings.Contains(m.rule+", "+m.name, *only) {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			out := ""
			if m.broken != Sound {
				c, ok := Find(m.scope)
				if !ok {
					t.Errorf("no scope %q", m.scope)
					return
				}
				c.Broken, c.MaxStates = m.broken, 1_500_000
				r, err := Search(c)
				if err != nil {
					t.Error(err)
				}
				out = r.String()
			} else {
				out = searchMutant(t, filepath.Join(dir, strings.ReplaceAll(m.rule+m.name, " ", "-")), m.scope, m.edits)
			}
			if !strings.Contains(out, "VIOLATED") && !strings.Contains(out, "panic: ") {
				t.Errorf("%s, %s: not caught in %q:\n%s", m.rule, m.name, m.scope, out)
				return
			}
			t.Logf("%s, %s (%v): %s", m.rule, m.name, time.Since(begin).Round(time.Millisecond), out)
		})
	}
	wg.Wait()
}

// searchMutant builds rightscheck over the edited source and searches one scope with it.
func searchMutant(t *testing.T, dir, scope string, edits []edit) string {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
		return ""
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	sources := map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(e.file)
		if err != nil {
			t.Error(err)
		}
		if _, ok := sources[path]; !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			sources[path] = string(data)
		}
		if n := strings.Count(sources[path], e.old); n != 1 {
			t.Errorf("%s: %q occurs %d times: the mutant does not fit the source any more", e.file, e.old, n)
			return ""
		}
		sources[path] = strings.Replace(sources[path], e.old, e.new, 1)
	}
	for path, text := range sources {
		copied := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
		overlay.Replace[path] = copied
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Error(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "rightscheck")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", binary, "./rightscheck").CombinedOutput(); err != nil {
		t.Errorf("build mutant: %v\n%s", err, out)
		return ""
	}
	out, _ := exec.CommandContext(ctx, binary, "-scope", scope).CombinedOutput() // fails when it finds something
	return string(out)
}
