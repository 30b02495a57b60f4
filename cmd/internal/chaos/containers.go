package chaos

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// removeContainer removes one container of the process owner.
func removeContainer(owner, choose int) (found bool, err error) {
	ids, err := containers(owner)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	_, err = docker("rm", "--force", ids[choose%len(ids)])
	if err != nil && (strings.Contains(err.Error(), "No such container") || strings.Contains(err.Error(), "already in progress")) {
		return false, nil // its owner was faster
	}
	return err == nil, err
}

// containers returns the containers of processes, by their labels.
func containers(owners ...int) (ids []string, err error) {
	out, err := docker("ps", "--all", "--no-trunc", "--filter", "label=tracesmith.owner", "--format", `{{.ID}} {{.Label "tracesmith.owner"}}`)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		id, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		of := strings.Split(owner, ".") // host, boot, space, pid, start
		if len(of) != 5 {
			continue
		}
		if pid, err := strconv.Atoi(of[3]); err == nil && slices.Contains(owners, pid) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

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
