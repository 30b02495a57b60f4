// Package publish turns staged episodes into a dataset version, and reads published
// datasets.
//
// Publish (publish.go) indexes the staged episodes (inputs.go), applies the selection,
// writes tables (tables.go) and texts (texts.go), and uploads them. It then writes the
// manifest, which commits the version (commit.go), points latest.json at the version
// (latest.go) and copies the version to the dataset's root (expose.go). Dataset reads a
// version. Audit checks all versions against their manifests. layout.go describes the
// files of a dataset.
//
// The content of a version depends only on the staged bytes, the configuration and the
// producer. A repeated or concurrent publish therefore writes the same objects, and the
// next publish completes one that was killed.
package publish
