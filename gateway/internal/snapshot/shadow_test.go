package snapshot

import (
	"testing"

	"partidor.dev/partidor/shared/limit"
)

// A rule in shadow mode is counted beside the one that decides; it hands nothing to the default.
func TestShadowRulesDecideNothing(t *testing.T) {
	at := limit.Revision{Number: 3}
	shadow := &limit.Rule{Capacity: 1, Refill: 1, PeriodSeconds: 1, Mode: limit.Shadow, Revision: at}
	broad := &limit.Rule{Capacity: 2, Refill: 1, PeriodSeconds: 1, Mode: limit.Shadow, Revision: at}
	enforced := &limit.Rule{Capacity: 100, Refill: 1, PeriodSeconds: 1, Revision: at}
	for name, tc := range map[string]struct {
		edit         func(*Builder)
		rule, shadow *limit.Rule
		scope        string
	}{
		"beside a broader rule":      {func(b *Builder) { b.SetRule("t1", "r", shadow); b.SetRule("*", "r", enforced) }, enforced, shadow, ScopeRoute},
		"broader than the enforced":  {func(b *Builder) { b.SetRule("t1", "r", enforced); b.SetRule("*", "r", shadow) }, enforced, nil, ScopeTenantRoute},
		"alone":                      {func(b *Builder) { b.SetRule("t1", "r", shadow) }, shadow, nil, ScopeTenantRoute},
		"two: the most specific one": {func(b *Builder) { b.SetRule("t1", "r", shadow); b.SetRule("t1", "*", broad) }, shadow, nil, ScopeTenantRoute},
	} {
		t.Run(name, func(t *testing.T) {
			b := Empty("eu").Edit()
			tc.edit(b)
			s := b.Build()
			m := s.Lookup("t1", "r")
			if m.Rule != tc.rule || m.Shadow != tc.shadow || m.Scope != tc.scope {
				t.Errorf("rule %+v, shadow %+v, scope %s", m.Rule, m.Shadow, m.Scope)
			}
			steps := s.Explain("t1", "r")
			if last := steps[len(steps)-1]; last.Scope == ScopeDefault {
				t.Errorf("explained by the default: %+v", steps)
			}
		})
	}
}
