// Package mutate makes bugs: it lists the places of a Python repository where
// one of 35 operators can put a mistake, and turns some of them into a patch.
//
// The work is done by a program in Python (python/) that runs in a sandbox beside
// the repository, because the repository's own interpreter decides what parses. It
// reads and parses the code and never imports it. A change is a list of text spans,
// so that formatting, comments and all other lines stay as they are; what the text
// then parses to is held to the same change made on the tree.
//
// Single mutations come from Mutator.Apply, combined ones from Compose, real bugs
// from a repository's history from Invert; a model that is asked Question writes them,
// and Written makes them of its answer.
//
// Everything that says where a bug is (Site, Mutation) is privileged: no policy may
// see it.
package mutate
