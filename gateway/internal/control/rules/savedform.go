package rules

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"partidor.dev/partidor/gateway/internal/snapshot"
	"partidor.dev/partidor/shared/limit"
	"partidor.dev/partidor/shared/rulesfile"
)

// The saved form is one JSON object per line: a head, one line per entry, a foot with the number of lines before it and
// their SHA-256. Unknown fields are ignored, another version is refused.
const savedVersion = 1

type savedLine struct {
	Head  *savedHead  `json:"head,omitempty"`
	Rule  *savedRule  `json:"rule,omitempty"`
	Plan  *savedPlan  `json:"plan,omitempty"`
	Key   *savedKey   `json:"key,omitempty"`
	Moved *savedMoved `json:"moved,omitempty"`
	Foot  *savedFoot  `json:"foot,omitempty"`
}

type savedHead struct {
	Version     int               `json:"version"`
	Region      string            `json:"region"`
	Revision    limit.Revision    `json:"revision"`
	ConfirmedAt time.Time         `json:"confirmed_at"`
	Shadow      bool              `json:"shadow,omitempty"`
	Default     savedRule         `json:"default"`
	Regions     []snapshot.Region `json:"regions"`
	RegionsAt   limit.Revision    `json:"regions_at"`
	Control     string            `json:"control_domain,omitempty"`
	Slow        bool              `json:"fast_loop_off,omitempty"`
}

type savedRule struct {
	rulesfile.Rule
	Revision limit.Revision `json:"rev"`
	Deleted  bool           `json:"deleted,omitempty"`
}

type savedPlan struct {
	Tenant   string         `json:"tenant"`
	Plan     string         `json:"plan,omitempty"`
	Revision limit.Revision `json:"rev"`
}

type savedKey struct {
	SHA256    string         `json:"sha256"`
	Tenant    string         `json:"tenant"`
	Disabled  bool           `json:"disabled,omitempty"`
	ExpiresAt *time.Time     `json:"expires_at,omitempty"`
	Revision  limit.Revision `json:"rev"`
}

type savedMoved struct {
	Tenant string      `json:"tenant"`
	Route  string      `json:"route"`
	Base   limit.Share `json:"base"`
	// Floor is absent where it is not known.
	Floor *limit.Share `json:"floor,omitempty"`
}

type savedFoot struct {
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// encode writes s as it was confirmed by its source at confirmed.
func encode(w io.Writer, s *snapshot.Snapshot, confirmed time.Time) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	sum := sha256.New()
	enc := json.NewEncoder(io.MultiWriter(buffered, sum))
	enc.SetEscapeHTML(false)
	lines := 0
	var err error
	put := func(l savedLine) bool {
		lines++
		err = enc.Encode(l)
		return err == nil
	}
	put(savedLine{Head: &savedHead{
		Version: savedVersion, Region: s.Region(), Revision: s.Revision(), ConfirmedAt: confirmed.UTC(), Shadow: s.Shadow(),
		Default: ruleForm(limit.Wildcard, limit.Wildcard, s.Default(), s.Default().Revision),
		Regions: s.Regions(), RegionsAt: s.RegionsRevision(), Control: s.Control(), Slow: !s.FastLoop(),
	}})
	for e := range s.Rules() {
		form := ruleForm(e.Tenant, e.Route, e.Rule, e.Revision)
		if err != nil || !put(savedLine{Rule: &form}) {
			break
		}
	}
	for p := range s.Plans() {
		if err != nil || !put(savedLine{Plan: &savedPlan{p.Tenant, p.Plan, p.Revision}}) {
			break
		}
	}
	for hash, k := range s.APIKeys() {
		form := savedKey{SHA256: hex.EncodeToString(hash[:]), Tenant: k.Tenant, Disabled: !k.Enabled, Revision: k.Revision}
		if !k.ExpiresAt.IsZero() {
			form.ExpiresAt = &k.ExpiresAt
		}
		if err != nil || !put(savedLine{Key: &form}) {
			break
		}
	}
	for k, base := range s.Moved() {
		form := savedMoved{Tenant: k.Tenant, Route: k.Route, Base: base}
		if floor, known := s.MovedFloor(k); known {
			form.Floor = &floor
		}
		if err != nil || !put(savedLine{Moved: &form}) {
			break
		}
	}
	if err != nil {
		return err
	}
	foot := savedFoot{Lines: lines, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if err := json.NewEncoder(buffered).Encode(savedLine{Foot: &foot}); err != nil {
		return err
	}
	return buffered.Flush()
}

func ruleForm(tenant, route string, rule *limit.Rule, at limit.Revision) savedRule {
	if rule == nil {
		return savedRule{Rule: rulesfile.Rule{Tenant: tenant, Route: route}, Revision: at, Deleted: true}
	}
	return savedRule{Rule: rulesfile.Of(tenant, route, rule), Revision: at}
}

// maxLine bounds one line of the saved form.
const maxLine = 1 << 20

// decode reads what encode wrote for region. Anything that is not exactly that is an error, and nothing of it is used.
func decode(r io.Reader, region string) (*saved, error) {
	d := decoder{region: region, builder: snapshot.Empty(region).Edit()}
	sum := sha256.New()
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	n := 0
	for lines.Scan() {
		var l savedLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if l.Foot != nil {
			if l.Foot.Lines != n || l.Foot.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
				return nil, errors.New("checksum does not match: the file was changed or cut")
			}
			if lines.Scan() {
				return nil, errors.New("something follows after the end")
			}
			return d.done()
		}
		if err := d.line(n, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		sum.Write(lines.Bytes())
		sum.Write(newline)
		n++
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errors.New("the end is missing: the file was cut")
}

var newline = []byte{'\n'}

type decoder struct {
	region  string
	builder *snapshot.Builder
	at      time.Time
}

func (d *decoder) line(n int, l *savedLine) error {
	switch {
	case n == 0:
		return d.head(l.Head)
	case l.Rule != nil && l.Rule.Deleted:
		d.builder.DeleteRule(l.Rule.Tenant, l.Rule.Route, l.Rule.Revision)
	case l.Rule != nil:
		if err := l.Rule.Validate(); err != nil {
			return err
		}
		d.builder.SetRule(l.Rule.Tenant, l.Rule.Route, l.Rule.Limit(l.Rule.Revision))
	case l.Plan != nil:
		d.builder.SetPlan(l.Plan.Tenant, l.Plan.Plan, l.Plan.Revision)
	case l.Key != nil:
		k := snapshot.APIKey{Tenant: l.Key.Tenant, Enabled: !l.Key.Disabled, ExpiresAt: value(l.Key.ExpiresAt), Revision: l.Key.Revision}
		var hash [32]byte
		if n, err := hex.Decode(hash[:], []byte(l.Key.SHA256)[:min(len(l.Key.SHA256), 64)]); err != nil || n != len(hash) {
			return errors.New("sha256: 64 hex digits expected")
		}
		d.builder.SetKey(hash, k)
	case l.Moved != nil:
		base, err := share(int64(l.Moved.Base))
		if err != nil {
			return err
		}
		key := limit.Key{Tenant: l.Moved.Tenant, Route: l.Moved.Route}
		d.builder.MarkMoved(key, base)
		if l.Moved.Floor != nil {
			d.builder.MarkFloor(key, *l.Moved.Floor)
		}
	}
	return nil
}

func (d *decoder) head(h *savedHead) error {
	switch {
	case h == nil:
		return errors.New("not a saved snapshot")
	case h.Version != savedVersion:
		return fmt.Errorf("version %d, this gateway reads %d", h.Version, savedVersion)
	case h.Region != d.region:
		return fmt.Errorf("saved by region %q, this is %q", h.Region, d.region)
	}
	d.at = h.ConfirmedAt
	d.builder.SetDefault(h.Default.Limit(h.Default.Revision))
	d.builder.SetShadow(h.Shadow)
	d.builder.SetControl(h.Control)
	d.builder.SetFastLoop(!h.Slow)
	d.builder.Reach(h.Revision)
	return d.builder.SetRegions(h.Regions, h.RegionsAt)
}

func (d *decoder) done() (*saved, error) {
	d.builder.SetStale(true)
	d.builder.Expire(time.Now())
	return &saved{snapshot: d.builder.Build(), at: d.at}, nil
}
