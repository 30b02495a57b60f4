// Package providers contains the clients of model servers and registers them in
// llms.Providers.
package providers
