package memd

import (
	"context"
	"errors"
)

// Certify goes through the daemon's certification: each reply is the next call's argument. An error says which value did not survive.
func Certify(ctx context.Context, c *Client) error {
	given := map[string]any{}
	err := c.Call(ctx, "rpc.certify.start", nil, &given)
	for _, step := range []string{"flag", "ints", "texts", "lists", "maps", "error", "end"} {
		if err != nil {
			return err
		}
		var next map[string]any
		err = c.Call(ctx, "rpc.certify."+step, given, &next)
		if step == "error" && errors.Is(err, ErrConflict) {
			next, err = asError(err).Data, nil
			next = map[string]any{"id": next["id"], "value": next["value"]}
		}
		given = next
	}
	if err == nil && given["value"] != "certified" {
		err = &Error{Name: "invalid_reply", Message: "the daemon did not certify this client", Data: map[string]any{}}
	}
	return err
}
