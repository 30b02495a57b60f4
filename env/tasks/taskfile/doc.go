// Package taskfile is the file form of tasks: JSONL (or Parquet with the same
// columns), one task per line.
//
// A line holds the fields of schemas.Task and
//
//	repo_tree   where the repository lies, relative to the file: a directory, or
//	            a .tar, .tar.gz (.tgz) or .tar.zst
//	bug_patch   optional: a unified diff that makes the agent's repository of it
//
// so that a healthy repository is stored once and each bug is a patch. The field
// tree_sha256 pins the tree after the patch: a mismatch is refused. Task files
// come from anywhere: every field is checked, and repo_tree cannot lead out of
// the directory the file lies in.
package taskfile
