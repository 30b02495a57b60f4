// Package mutate makes bugs: it lists the places of a Python repository where one of 35 operators
// can make a mistake, and turns some of them into a patch.
//
// A Python program (python/) does the work. It runs in a sandbox beside the repository, because the
// repository's own interpreter decides what parses. It reads and parses the code and never imports
// it. A change is a list of text spans, so that formatting, comments and all other lines stay as
// they are. The program parses the changed text and compares it with the same change of the syntax
// tree.
//
// Mutator.Apply makes single mutations, Compose combines them, Invert takes real bugs from a
// repository's history, and Question and Written let a model write them.
//
// Everything that says where a bug is (Site, Mutation) is privileged: no policy may see it.
package mutate
