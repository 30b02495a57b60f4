package pool

import (
	"context"
	"time"

	"github.com/tracesmith/tracesmith/env"
)

// refill starts what a shelf lacks. Called with mu held.
func (p *Pool) refill(s *shelf) {
	if p.closed || time.Now().Before(s.until) {
		return
	}
	for len(s.ready)+s.starting < p.cfg.Size && p.room(s) {
		s.starting++
		p.work.Go(func() { p.boot(s) })
	}
}

// room makes place for one more sandbox: where all are taken, the shelf that was
// asked for longest ago gives one up. Called with mu held.
func (p *Pool) room(s *shelf) bool {
	total := 0
	var oldest *shelf
	for _, other := range p.shelves {
		total += len(other.ready) + other.starting
		if other != s && len(other.ready) > 0 && (oldest == nil || other.asked < oldest.asked) {
			oldest = other
		}
	}
	if total < p.cfg.Total {
		return true
	}
	if oldest == nil {
		return false
	}
	p.stats.Expired++
	p.close(oldest.ready[0].sandbox)
	oldest.ready = oldest.ready[1:]
	return true
}

// boot starts one sandbox in the background and puts it on its shelf.
func (p *Pool) boot(s *shelf) {
	var sb env.Sandbox
	var err error
	select {
	case p.slots <- struct{}{}:
		ctx, cancel := context.WithTimeout(p.life, startBound)
		sb, err = p.Driver.Start(ctx, s.spec)
		cancel()
		<-p.slots
	case <-p.life.Done():
		err = p.life.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.starting--
	if err != nil {
		if !p.closed {
			p.stats.Failed++
			s.pause = min(max(2*s.pause, firstPause), maxPause)
			s.until = time.Now().Add(s.pause)
		}
		return // whoever needs one now starts it, and is told
	}
	s.pause = 0
	s.ready = append(s.ready, warm{sb, time.Now()})
}

// discard closes a sandbox in the background.
func (p *Pool) discard(sb env.Sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close(sb)
}

// close closes a sandbox in the background, or now where the background is
// over. Called with mu held. What goes wrong is the reaper's to mend.
func (p *Pool) close(sb env.Sandbox) {
	end := func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeBound)
		defer cancel()
		_ = sb.Close(ctx)
	}
	if p.closed {
		end()
		return
	}
	p.work.Go(end)
}

// expire closes what nobody took for too long, until the pool ends.
func (p *Pool) expire() {
	defer p.idle.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-p.idle.C:
		}
		p.idle.Reset(p.sweep(time.Now()))
	}
}

// sweep closes what has expired by now and tells when to look again.
func (p *Pool) sweep(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.cfg.Idle
	for key, s := range p.shelves {
		for len(s.ready) > 0 && now.Sub(s.ready[0].since) >= p.cfg.Idle {
			p.stats.Expired++
			p.close(s.ready[0].sandbox)
			s.ready = s.ready[1:]
		}
		if len(s.ready) > 0 {
			next = min(next, p.cfg.Idle-now.Sub(s.ready[0].since))
		} else if s.starting == 0 && now.After(s.until) {
			delete(p.shelves, key)
		}
	}
	return next
}
