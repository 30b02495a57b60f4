// Package normalise converts a recorded episode into the rows that are staged: it
// removes control codes, makes text valid UTF-8, redacts secrets, moves long texts to
// blobs, and fills every column whose value is known. Equal episodes give equal bytes.
package normalise
