// Package discover finds out how a checkout is set up and tested. It reads what the repository says about
// itself (packaging metadata, requirements, tox, nox, CI files, layout), makes plans in order of that evidence,
// and tries them in a sandbox until the tests can be collected and some of them pass. It learns from the error
// of a failed plan: a missing module or a plugin that the settings require is added, and the plan is tried again.
//
// Given the files of a checkout, Find returns the task fields that set it up and test it (Python, Setup,
// Entrypoint), the evidence for each, and all attempts with their real errors. It never runs code of the
// repository outside of a sandbox: setup.py and noxfile.py are read as text.
//
// evidence.go collects facts with the readers in pyproject.go, ini.go and scripts.go; layout.go looks at the
// files; python.go chooses interpreters; plan.go makes plans and writes them as commands; repair.go changes a
// plan that failed; discover.go tries them; outcome.go judges an attempt, and imports.go whether it tested the checkout.
package discover
