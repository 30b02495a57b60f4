package env

import (
	"errors"
	"io"
	"reflect"
)

// Local returns the session's one value of type T, zero at first use: where a
// tool keeps what lives as long as the session, such as its shell. Values are
// dropped with the session, and closed if *T is an io.Closer; whatever they hold
// open in the sandbox dies with it.
func Local[T any](s *Session) *T {
	key := reflect.TypeFor[T]()
	if v, ok := s.locals[key]; ok {
		return v.(*T)
	}
	if s.locals == nil {
		s.locals = map[any]any{}
	}
	v := new(T)
	s.locals[key] = v
	return v
}

// closeLocals closes what tools have kept outside the sandbox.
func (s *Session) closeLocals() error {
	var errs []error
	for _, v := range s.locals {
		if c, ok := v.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	s.locals = nil
	return errors.Join(errs...)
}
