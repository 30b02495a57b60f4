package chaos

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// removeContainer removes one container of the process owner, chosen by number.
func removeContainer(owner, number int) (found bool, err error) {
	ids, err := containers(owner)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	_, err = docker("rm", "--force", ids[number%len(ids)])
	if err != nil && (strings.Contains(err.Error(), "No such container") || strings.Contains(err.Error(), "already in progress")) {
		return false, nil // its owner removed it first
	}
	return err == nil, err
}

// containers returns the ids of the containers of processes, which labels name as owners.
func containers(owners ...int) (ids []string, err error) {
	out, err := docker("ps", "--all", "--no-trunc", "--filter", "label=tracesmith.owner", "--format", `{{.ID}} {{.Label "tracesmith.owner"}}`)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		id, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Split(owner, ".") // host, boot, namespace, pid, start time
		if len(fields) != 5 {
			continue
		}
		if pid, err := strconv.Atoi(fields[3]); err == nil && slices.Contains(owners, pid) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// docker runs a command of the Docker client and returns its output.
func docker(args ...string) (string, error) {
	out, err := exec.Command("docker", args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	return string(out), nil
}
