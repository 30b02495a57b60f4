package provenance

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	domain = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)
	// Top-level names of private networks.
	private = regexp.MustCompile(`\.(local|localhost|localdomain|lan|home|internal|intranet|corp|arpa)$`)
	segment = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
	scp     = regexp.MustCompile(`^(?:[^@/\s:]+@)?([^@/\s:]+):([^/].*)$`) // git's short form of ssh: user@host:path
)

// roots are directories at the start of paths on a machine. None of them owns repositories.
var roots = []string{"home", "users", "root", "srv", "var", "mnt", "media", "opt", "tmp", "usr", "etc", "volumes", "private", "export", "data", "nfs"}

// Hosted is the canonical name of a repository on a public host, "" for any other, such as a
// path on a machine. owner/name without a host is on GitHub.
func Hosted(given string) string {
	given = strings.TrimSpace(given)
	if address := Remote(given); address != "" {
		given = plainAddress(address)
	} else if strings.ContainsAny(given, ":@~$%\\") {
		return ""
	}
	name := Canonical(given)
	host, rest, found := strings.Cut(name, "/")
	if !found || !public(host) || !segments(rest) {
		return ""
	}
	owner, _, _ := strings.Cut(strings.ToLower(given), "/")
	if slices.Contains(roots, owner) {
		return ""
	}
	return name
}

// Remote is the address of a git remote without user, password and query. It is "" unless the
// remote is a repository on a public host, and not a directory, a bundle, or a machine of a
// private network.
func Remote(address string) string {
	address = strings.TrimSpace(address)
	if m := scp.FindStringSubmatch(address); m != nil && !strings.Contains(address, "://") {
		host, rest := strings.ToLower(m[1]), m[2]
		if !public(host) || !repository(rest, true) {
			return ""
		}
		return "git@" + host + ":" + rest
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https"}, u.Scheme) {
		return ""
	}
	if !public(strings.ToLower(u.Hostname())) || !repository(strings.Trim(u.Path, "/"), strings.Contains(u.Scheme, "ssh") || u.Scheme == "git") {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}

// repository reports whether a path names a repository on a host. If directory is true, as for
// a server reached by ssh, a path of a directory on that server does not.
func repository(path string, directory bool) bool {
	first, _, found := strings.Cut(path, "/")
	return found && segments(path) && !(directory && slices.Contains(roots, strings.ToLower(first)))
}

// plainAddress is host/path of an address that Remote has returned.
func plainAddress(address string) string {
	if rest, ok := strings.CutPrefix(address, "git@"); ok {
		return strings.Replace(rest, ":", "/", 1)
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname() + u.Path
}

// public reports whether a host has a public domain name.
func public(host string) bool {
	return domain.MatchString(host) && !private.MatchString(host) && net.ParseIP(host) == nil
}

// segments reports whether all parts of a path are valid names.
func segments(path string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if !segment.MatchString(part) || strings.Trim(part, ".") == "" {
			return false
		}
	}
	return true
}
