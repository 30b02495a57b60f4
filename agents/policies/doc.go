// Package policies holds the agents, one file (or group of files) each,
// registered in agents.Registry by init. It may import agents and what lies
// below it, llms and schemas; never an environment or a tool.
package policies
