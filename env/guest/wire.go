package guest

// protocol is the version that host and guest must agree on.
const protocol = 3

// Bounds of messages, the same for host and guest.
const (
	pieceBytes = 1 << 20  // of a file, an archive or an output in one message
	maxOutput  = 64 << 20 // of a program that the guest keeps
)

func texts(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, b := range raw {
		out[i] = string(b)
	}
	return out
}

func byteSlices(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}
