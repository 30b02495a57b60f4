// Package audit checks what an episode shows and says. It reads the published rows, and nothing that
// a policy knew or intended. Record collects what the observations show.
package audit
