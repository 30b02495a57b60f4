package audit

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// verdict is a verdict on a claim with its reason in a few words.
type verdict struct{ is, why string }

func isTrue(format string, args ...any) verdict {
	return verdict{schemas.ClaimTrue, fmt.Sprintf(format, args...)}
}

func isFalse(format string, args ...any) verdict {
	return verdict{schemas.ClaimFalse, fmt.Sprintf(format, args...)}
}

func unchecked(format string, args ...any) verdict {
	return verdict{schemas.ClaimUnchecked, fmt.Sprintf(format, args...)}
}

func short(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
