package guest

// capture keeps the first and the last half of what is written to it, so that
// memory is bounded by max whatever the length.
type capture struct {
	max   int64
	head  []byte
	tail  []byte // a ring once full
	at    int    // next position in the full ring
	total int64
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := int(c.max/2) - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	size := int(c.max - c.max/2)
	if len(p) > size {
		p = p[len(p)-size:]
	}
	for len(p) > 0 {
		if len(c.tail) < size {
			k := min(size-len(c.tail), len(p))
			c.tail = append(c.tail, p[:k]...)
			p = p[k:]
			continue
		}
		k := copy(c.tail[c.at:], p)
		c.at = (c.at + k) % size
		p = p[k:]
	}
	return n, nil
}

// bytes is head then tail; headLen is the length of the first part, or of all
// when nothing was cut.
func (c *capture) bytes() (out []byte, headLen int) {
	out = append(c.head, c.tail[c.at:]...)
	out = append(out, c.tail[:c.at]...)
	if int64(len(out)) == c.total {
		return out, len(out)
	}
	return out, len(c.head)
}
