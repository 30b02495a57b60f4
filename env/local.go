package env

import (
	"errors"
	"io"
	"reflect"
)

// Local returns a pointer to the session's value of type T. The first call for T in a session
// creates a zero value. Tools use Local for state that must live as long as the session, such as
// a shell. When the session ends, it closes each value for which *T implements io.Closer.
// Processes in the sandbox do not need to be closed, because they end with the sandbox.
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
