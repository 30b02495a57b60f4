// Package policies holds the agents, one file or group of files each. init functions register them
// in agents.Registry.
package policies
