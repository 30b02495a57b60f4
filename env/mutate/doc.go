// Package mutate injects bugs into Python repositories. It lists the sites at which one of 35
// mutation operators can change the code, and makes a patch from some of them.
//
// The mutator is a Python program (python/) that runs in a sandbox with the repository, because
// only the repository's interpreter decides which code parses. The mutator parses the code and
// never imports it. A change is a list of text spans, so formatting, comments and all other lines
// stay as they are. As a check, the mutator makes the same change to the syntax tree, parses the
// changed text, and requires the two trees to be equal.
//
// Mutator.Apply changes the code at given sites, and Compose chooses sites to change together.
// Mutator.Invert takes real bugs from the history of a repository. Mutator.BugPrompt returns the prompt
// that asks a model to write a bug, and Mutator.FromAnswer makes a mutation from the model's answer.
//
// Everything that says where a bug is (Site, Mutation) is privileged: no policy may see it.
package mutate
