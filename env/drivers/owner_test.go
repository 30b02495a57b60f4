package drivers

import "testing"

func TestOwner(t *testing.T) {
	me := Self()
	if back, ok := ParseOwner(me.String()); !ok || back != me || me.Dead() {
		t.Errorf("%v came back as %v, dead %v", me, back, me.Dead())
	}
	for _, c := range []struct {
		change func(*Owner)
		dead   bool
	}{
		{func(o *Owner) { o.start++ }, true}, // its pid belongs to a later process
		{func(o *Owner) { o.boot = "another" }, true},
		{func(o *Owner) { o.boot, o.host = "another", "another" }, false}, // unknown: another machine
		{func(o *Owner) { o.start++; o.space = "1" }, false},              // unknown: another pid namespace
	} {
		o := me
		c.change(&o)
		if o.Dead() != c.dead {
			t.Errorf("%v: dead %v", o, o.Dead())
		}
	}
	for _, s := range []string{"", "a.b", "a.b.c.d.e", "a.b.c.1.x"} {
		if _, ok := ParseOwner(s); ok {
			t.Errorf("%q is an owner", s)
		}
	}
}
