// Package memd is a thin client for memd, the daemon that keeps the memory of agents.
//
// A Client connects when it is first used, starts the daemon if nobody listens, and connects again when it must. It may be used
// by many goroutines at once. Every method of the protocol is a method here, with typed parameters, results and errors;
// ../PROTOCOL.md says what they mean.
//
//	client := memd.New(memd.Options{Name: "my-agent"})
//	defer client.Close()
//	opened, err := client.SessionOpen(ctx, memd.SessionOpenParams{Key: "my-agent:42"})
package memd
