// Package providers holds the model providers, one file or group of files
// each, registered in llms.Providers by init. It is the only home of
// go-openai and may import llms, schemas and configs/plugin.
package providers
