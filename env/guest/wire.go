package guest

// protocol is the version that host and guest must agree on.
const protocol = 3

// Size limits that host and guest share, in bytes.
const (
	pieceBytes = 1 << 20  // the part of a file, an archive or an output in one message
	maxOutput  = 64 << 20 // the output of one program that the guest keeps
)

func toStrings(raw [][]byte) []string {
	out := make([]string, len(raw))
	for i, b := range raw {
		out[i] = string(b)
	}
	return out
}

func toByteSlices(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}
