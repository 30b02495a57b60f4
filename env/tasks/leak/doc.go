// Package leak searches the files of a repository for the fix of its bug.
//
// A fix is given as files before and after the change. The search looks for the parts of the fixed files that the
// repository's own code does not contain: several words in a row, whole lines, pairs of lines, and code with other
// names. These parts are called needles. A part of the fix that other code contains is not a secret, unless that code
// is not in use: comments, strings, modules that nothing imports and functions that nothing calls may have been added
// to reveal the fix. The search also unpacks and decodes files, and recognizes patches.
package leak
