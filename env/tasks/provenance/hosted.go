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
	// private matches hosts in the top-level domains of private networks.
	private = regexp.MustCompile(`\.(local|localhost|localdomain|lan|home|internal|intranet|corp|arpa)$`)
	segment = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)
	scp     = regexp.MustCompile(`^(?:[^@/\s:]+@)?([^@/\s:]+):([^/].*)$`) // git's short form of ssh: user@host:path
)

// systemDirs are directories at the start of absolute paths. A name that starts with one of them is a path on a machine
// and not owner/name.
var systemDirs = []string{"home", "users", "root", "srv", "var", "mnt", "media", "opt", "tmp", "usr", "etc", "volumes", "private", "export", "data", "nfs"}

// Hosted returns the canonical name of a repository on a public host. It returns "" for anything else, such as a path
// on a machine. A name of the form owner/name is a repository on GitHub.
func Hosted(given string) string {
	given = strings.TrimSpace(given)
	if address := Remote(given); address != "" {
		given = plainAddress(address)
	} else if strings.ContainsAny(given, ":@~$%\\") {
		return ""
	}
	name := Canonical(given)
	host, rest, found := strings.Cut(name, "/")
	if !found || !isPublicHost(host) || !areSegments(rest) {
		return ""
	}
	owner, _, _ := strings.Cut(strings.ToLower(given), "/")
	if slices.Contains(systemDirs, owner) {
		return ""
	}
	return name
}

// Remote returns the address of a git remote without user, password and query. It returns "" unless the remote is a
// repository on a public host. A directory, a bundle, and a host in a private network are not public.
func Remote(address string) string {
	address = strings.TrimSpace(address)
	if m := scp.FindStringSubmatch(address); m != nil && !strings.Contains(address, "://") {
		host, rest := strings.ToLower(m[1]), m[2]
		if !isPublicHost(host) || !isRepositoryPath(rest, true) {
			return ""
		}
		return "git@" + host + ":" + rest
	}
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https"}, u.Scheme) {
		return ""
	}
	if !isPublicHost(strings.ToLower(u.Hostname())) || !isRepositoryPath(strings.Trim(u.Path, "/"), strings.Contains(u.Scheme, "ssh") || u.Scheme == "git") {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return u.String()
}

// isRepositoryPath reports whether a path on a host names a repository. If mayBeDirectory is set, as for a server that
// is reached by ssh, it returns false for the absolute path of a directory on that server.
func isRepositoryPath(path string, mayBeDirectory bool) bool {
	first, _, found := strings.Cut(path, "/")
	return found && areSegments(path) && !(mayBeDirectory && slices.Contains(systemDirs, strings.ToLower(first)))
}

// plainAddress returns an address from Remote as host/path.
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

// isPublicHost reports whether a host has a public domain name.
func isPublicHost(host string) bool {
	return domain.MatchString(host) && !private.MatchString(host) && net.ParseIP(host) == nil
}

// areSegments reports whether all parts of a path are valid names.
func areSegments(path string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if !segment.MatchString(part) || strings.Trim(part, ".") == "" {
			return false
		}
	}
	return true
}
