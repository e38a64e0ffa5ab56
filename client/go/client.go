package memd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	// Version is this client's.
	Version = "0.1.0"

	defaultTimeout = 10 * time.Second
	firstPause     = 20 * time.Millisecond
	longestPause   = 500 * time.Millisecond
	// margin is what the daemon's own answer about a deadline gets to arrive: it says more than our giving up.
	margin = 250 * time.Millisecond
)

// Options say where memd is and who calls. The zero value is a client for the user's own daemon.
type Options struct {
	Socket  string // its path; empty looks at the places of the protocol
	Profile string // needed only where several are configured
	Name    string // recorded with every change
	Context string // "primary" (default), "subagent", "cron" or "job"
	Access  string // less than the context has: "none", "read" or "add"
	// Timeout bounds a call, reconnecting and repeating included, unless its context ends sooner. 0 is ten seconds.
	Timeout time.Duration
	// NoAutostart leaves a daemon that is not running alone, as MEMD_AUTOSTART=0 does.
	NoAutostart bool
	Env         func(string) string // os.Getenv if nil
	// Start starts a daemon and returns its socket's path; nil runs `memd socket --start`.
	Start func(ctx context.Context) (string, error)
}

// Client is a client. It is safe for concurrent use.
type Client struct {
	options Options

	mutex  sync.Mutex
	wire   *connection
	hello  HelloResult
	met    bool // whether there has been a connection: a daemon that is gone is then probably coming back
	closed bool
}

// shared is what the client puts into the parameters of a call, and whether it may be made again.
type shared struct {
	deadline   **int64
	request    *string
	repeatable bool
}

// New makes a client; it connects when first used.
func New(options Options) *Client {
	if options.Env == nil {
		options.Env = os.Getenv
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	if options.Name == "" {
		options.Name = "memd-go"
	}
	return &Client{options: options}
}

// Close closes the connection; calls under way fail with connection_lost, and so does every later one.
func (c *Client) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	if c.wire != nil {
		c.wire.close()
		c.wire = nil
	}
	return nil
}

// Hello is what the handshake settled. It connects if that has not been done.
func (c *Client) Hello(ctx context.Context) (HelloResult, error) {
	err := c.RPCPing(ctx, RpcPingParams{}) // over a restart too
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.hello, err
}

// Call calls any method, also one this client does not know: params is a map or a struct with msgpack tags, result a pointer or
// nil. It is not repeated once the daemon may have seen it.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	return c.call(ctx, method, params, shared{}, result)
}

// call makes the call, over lost connections and restarts of the daemon, within the client's timeout. Mutations get a request_id,
// with which they are done once however often they are sent.
func (c *Client) call(ctx context.Context, method string, params any, with shared, result any) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	if with.request != nil && *with.request == "" {
		*with.request = newRequestID()
	}
	chosen := with.deadline != nil && *with.deadline != nil
	doubt := false // whether the daemon may have carried out an earlier attempt
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if with.deadline != nil && !chosen {
			*with.deadline = remaining(ctx)
		}
		raw, err := c.attempt(ctx, method, params)
		if err == nil {
			return decode(raw, result)
		}
		problem := asError(err)
		if problem == nil {
			return err
		}
		if doubt && method == "session.close" && problem.Is(ErrNoSuchSession) {
			return nil // closed by the attempt whose reply was lost
		}
		doubt = doubt || problem.sent
		if !c.again(problem, with) || !sleep(ctx, pause) {
			return final(problem, with, doubt)
		}
	}
}

func (c *Client) attempt(ctx context.Context, method string, params any) (msgpack.RawMessage, error) {
	wire, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return wire.call(ctx, method, params)
}

// again is whether a call that failed may be made once more.
func (c *Client) again(problem *Error, with shared) bool {
	safe := with.repeatable || with.request != nil
	switch {
	case problem.Is(ErrNotRunning):
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.met && !c.closed
	case problem.Is(ErrConnectionLost):
		c.drop()
		return safe || !problem.sent
	case problem.Is(ErrShuttingDown):
		c.drop()
		return safe || problem.Outcome() != "unknown"
	case problem.Is(ErrBusy), problem.Is(ErrTooManyRequests):
		return safe || problem.Outcome() != "unknown"
	}
	return false
}

// connected is the open connection, or a new one that has said hello.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return nil, &Error{Name: "invalid_request", Message: "this client is closed", Data: map[string]any{}}
	}
	if c.wire != nil && c.wire.alive() {
		return c.wire, nil
	}
	wire, hello, err := c.open(ctx, !c.options.NoAutostart)
	if err != nil {
		return nil, err
	}
	c.wire, c.hello, c.met = wire, hello, true
	return wire, nil
}

// open makes a new connection and says hello on it.
func (c *Client) open(ctx context.Context, mayStart bool) (*connection, HelloResult, error) {
	wire, err := c.reach(ctx, mayStart)
	if err != nil {
		return nil, HelloResult{}, err
	}
	hello := HelloParams{
		Client:   ClientInfo{Name: c.options.Name, Version: Version},
		Protocol: []int64{ProtocolVersion, ProtocolVersion},
		Profile:  c.options.Profile, Context: c.options.Context, Access: c.options.Access,
	}
	var answered HelloResult
	raw, err := wire.call(ctx, "hello", hello)
	if err == nil {
		err = decode(raw, &answered)
	}
	if err != nil {
		wire.close()
		if problem := asError(err); problem.Is(ErrConnectionLost) {
			problem.sent = false // nothing but hello was
		}
		return nil, HelloResult{}, err
	}
	return wire, answered, nil
}

func (c *Client) reach(ctx context.Context, mayStart bool) (*connection, error) {
	var first error
	for _, path := range Sockets(c.options.Socket, c.options.Env) {
		wire, err := dial(ctx, path)
		if err == nil || !errors.Is(err, ErrNotRunning) {
			return wire, err
		}
		if first == nil || !absent(err) {
			first = err
		}
	}
	if !mayStart || c.options.Env("MEMD_AUTOSTART") == "0" {
		return nil, first
	}
	starting := c.options.Start
	if starting == nil {
		starting = func(ctx context.Context) (string, error) { return start(ctx, c.options.Socket, c.options.Env) }
	}
	path, err := starting(ctx)
	if err != nil {
		return nil, err
	}
	return dial(ctx, path)
}

func (c *Client) drop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.wire != nil {
		c.wire.close()
		c.wire = nil
	}
}

// final makes the error say what is known of a mutation over all attempts, and with which request_id to ask again. A reply about the
// mutation itself is the last word.
func final(problem *Error, with shared, doubt bool) error {
	passing := problem.Is(ErrShuttingDown) || problem.Is(ErrBusy) || problem.Is(ErrTooManyRequests)
	trouble := problem.Is(ErrNotRunning) || problem.Is(ErrConnectionLost) || problem.Is(ErrTimeout) || problem.Is(ErrUntrusted)
	if with.request == nil || !passing && !trouble {
		return problem
	}
	told := *problem
	told.Data = map[string]any{}
	for key, value := range problem.Data {
		told.Data[key] = value
	}
	told.Data["request_id"] = *with.request
	told.Data["outcome"] = "none"
	if doubt || problem.Outcome() == "unknown" {
		told.Data["outcome"] = "unknown"
	}
	return &told
}

// remaining is what is left of the call's time, less what the answer needs to arrive, in milliseconds.
func remaining(ctx context.Context) *int64 {
	until, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	left := time.Until(until)
	ms := max(1, (left - min(margin, left/10)).Milliseconds())
	return &ms
}

func decode(raw msgpack.RawMessage, result any) error {
	if result == nil {
		return nil
	}
	if err := msgpack.Unmarshal(raw, result); err != nil {
		return &Error{Name: "invalid_reply", Message: err.Error(), Data: map[string]any{}, cause: err}
	}
	return nil
}

// absent is whether nobody listens, as opposed to being kept out.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// newRequestID is a random UUID.
func newRequestID() string {
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic(err) // the system's source of randomness is gone
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}
