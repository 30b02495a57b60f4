// Package policies implements the agents, each in its own file or group of files. init functions
// register them in agents.Registry.
package policies
