// Package guestpb is the wire protocol between host and guest, generated from
// guest.proto.
package guestpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-ttrpc_out=. --go-ttrpc_opt=paths=source_relative guest.proto
