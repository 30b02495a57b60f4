// Package publish turns staged episodes into a dataset version, and reads published
// datasets.
//
// Publish (publish.go) indexes the staged episodes (inputs.go), applies the
// selection, writes tables (tables.go) and texts (texts.go), uploads them and writes
// the manifest last, which commits the version (commit.go). It then points latest.json
// at the version (latest.go) and copies the version to the dataset's root (expose.go).
// Dataset reads a version; Audit checks all versions against their manifests.
// layout.go describes the files of a dataset.
//
// The content of a version is a function of the staged bytes, the recipe and the
// producer. So a repeated or concurrent publish writes the same objects, and the next
// publish completes a killed one.
package publish
