package memd

import (
	"errors"
	"fmt"
)

// Error is an error of the protocol, or one of the four that concern the connection. Compare with errors.Is and the Err… values: two
// are the same if their names are.
type Error struct {
	Name      string
	Code      int
	Message   string
	Retryable bool
	// Data has what is needed to act. Of a mutation, "outcome" is "none" or "unknown": whether something may have changed.
	Data map[string]any
	// sent says whether the daemon may have seen the request.
	sent  bool
	cause error
}

// What can go wrong before or instead of a reply.
var (
	ErrNotRunning     = &Error{Name: "not_running"}
	ErrUntrusted      = &Error{Name: "untrusted"}
	ErrConnectionLost = &Error{Name: "connection_lost"}
	ErrTimeout        = &Error{Name: "timeout"}
)

// Error says it in one line.
func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Is compares by name.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Name == e.Name
}

// Unwrap gives the system's own error, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Outcome of a mutation: "none", "unknown", or "" where it does not apply.
func (e *Error) Outcome() string {
	outcome, _ := e.Data["outcome"].(string)
	return outcome
}

// failure makes an error of the connection. Format's arguments may hold its cause.
func failure(kind *Error, sent bool, cause error, format string, arguments ...any) *Error {
	return &Error{
		Name: kind.Name, Message: fmt.Sprintf(format, arguments...), Retryable: !sent, Data: map[string]any{}, sent: sent, cause: cause,
	}
}

// fromWire reads the error of a reply, in the map form or the pair form.
func fromWire(value any) *Error {
	found := &Error{Data: map[string]any{}}
	switch value := value.(type) {
	case map[string]any:
		found.Name, _ = value["name"].(string)
		found.Message, _ = value["message"].(string)
		found.Retryable, _ = value["retryable"].(bool)
		found.Code = int(number(value["code"]))
		if data, ok := value["data"].(map[string]any); ok {
			found.Data = data
		}
	case []any:
		if len(value) == 2 {
			found.Code = int(number(value[0]))
			found.Message, _ = value[1].(string)
		}
	default:
		found.Message = fmt.Sprint(value)
	}
	return found
}

// number reads an int of whatever width it was decoded to.
func number(value any) int64 {
	switch value := value.(type) {
	case int64:
		return value
	case uint64:
		return int64(value)
	case int8:
		return int64(value)
	case uint8:
		return int64(value)
	case int16:
		return int64(value)
	case uint16:
		return int64(value)
	case int32:
		return int64(value)
	case uint32:
		return int64(value)
	}
	return 0
}

// asError finds the protocol's error in any.
func asError(err error) *Error {
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	return nil
}
