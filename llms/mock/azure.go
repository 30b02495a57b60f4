package mock

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// apiKey returns the key of a request, from the header of any API.
func apiKey(r *http.Request) string {
	return cmp.Or(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Api-Key"), r.Header.Get("Api-Key"))
}

// azure translates the paths of Azure, /openai/deployments/NAME/..., which require
// a version. Deployments are named like the models. It returns false if it has
// answered the request.
func (h *Handler) azure(w http.ResponseWriter, r *http.Request) (string, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/openai/")
	if !ok {
		return r.URL.Path, true
	}
	if len(r.URL.Query().Get("api-version")) != len("2024-10-21") {
		sendError(w, http.StatusNotFound, "404", "Resource not found")
		return "", false
	}
	if after, ok := strings.CutPrefix(rest, "deployments/"); ok {
		name, path, _ := strings.Cut(after, "/")
		if names := h.modelNames(); len(names) > 0 && !slices.Contains(names, name) {
			sendError(w, http.StatusNotFound, "DeploymentNotFound", "The API deployment for this resource does not exist.")
			return "", false
		}
		rest = path
	}
	return "/v1/" + rest, true
}
