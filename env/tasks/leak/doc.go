// Package leak searches the files of a repository for the fix of its bug.
//
// The fix is a set of files before and after. Every part of the fixed files that the repository's
// own code does not have is looked for: some words in a row, whole lines, two lines, and code
// with other names. A part that code has elsewhere is no secret, but only code in use counts:
// comments, strings, other texts, modules that nothing imports and functions that nothing calls
// may be where somebody left the fix. Files are also read as patches, and unpacked and decoded.
package leak
