// Package taskfile reads and writes task files: JSONL, or Parquet with the same columns, one task per line.
//
// A line holds the fields of schemas.Task and
//
//	repo_tree   path of the repository, relative to the file: a directory, or
//	            a .tar, .tar.gz (.tgz) or .tar.zst
//
// An optional bug_patch adds the bug to this repository, so a repository without bugs is stored once and each bug is a
// patch. tree_sha256 is the hash of the repository after the patch; Entry.Tree returns an error if it does not match.
// Task files are not trusted: every field is checked, and repo_tree cannot lead out of the directory of the file.
package taskfile
