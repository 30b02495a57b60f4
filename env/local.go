package env

import (
	"errors"
	"io"
	"reflect"
)

// Local returns the session's only value of type T, which is zero at first use. A tool
// keeps there what must live as long as the session, such as its shell. When the session
// ends, each value for which *T is an io.Closer is closed. Processes in the sandbox need
// not be closed, because they end with the sandbox.
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

// closeLocals closes and drops the values of Local.
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
