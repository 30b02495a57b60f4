package env

import "reflect"

// Local returns the session's one value of type T, zero at first use: where a
// tool keeps what lives as long as the session, such as its shell. Values are
// dropped with the session; whatever they hold open in the sandbox dies with it.
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
