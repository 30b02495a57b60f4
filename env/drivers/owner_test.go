package drivers

import "testing"

func TestOwner(t *testing.T) {
	self := Self()
	if parsed, ok := ParseOwner(self.String()); !ok || parsed != self || self.Dead() {
		t.Errorf("%v is parsed as %v, dead %v", self, parsed, self.Dead())
	}
	for _, c := range []struct {
		change func(*Owner)
		dead   bool
	}{
		{func(o *Owner) { o.start++ }, true}, // a later process has the pid
		{func(o *Owner) { o.boot = "another" }, true},
		{func(o *Owner) { o.boot, o.host = "another", "another" }, false}, // unknown: another machine
		{func(o *Owner) { o.start++; o.pidNS = "1" }, false},              // unknown: another pid namespace
	} {
		o := self
		c.change(&o)
		if o.Dead() != c.dead {
			t.Errorf("%v: dead %v", o, o.Dead())
		}
	}
	for _, s := range []string{"", "a.b", "a.b.c.d.e", "a.b.c.1.x"} {
		if _, ok := ParseOwner(s); ok {
			t.Errorf("%q is parsed as an owner", s)
		}
	}
}
