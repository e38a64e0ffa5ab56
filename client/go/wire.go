package memd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	request      = 0
	reply        = 1
	notification = 2
)

// notificationRoom is how many notifications wait for a reader. memd itself keeps no more than a thousand for one that is slow.
const notificationRoom = 1000

// note is a notification of the daemon.
type note struct {
	method string
	params []msgpack.RawMessage
}

// answer is what became of a request: a result, or an error.
type answer struct {
	result msgpack.RawMessage
	err    *Error
}

// connection is one connection, for many goroutines at once. After it is lost it stays lost.
type connection struct {
	path    string
	socket  *net.UnixConn
	notes   chan note
	ended   chan struct{} // closed when the connection is lost
	writing sync.Mutex

	mutex   sync.Mutex
	last    uint32
	waiting map[uint32]chan answer
	lost    *Error
}

// dial connects, and looks whose process it is before anything is said.
func dial(ctx context.Context, path string) (*connection, error) {
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, failure(ErrTimeout, false, err, "%s: not accepted in time", path)
		}
		return nil, failure(ErrNotRunning, false, err, "no memd listens at %s (%v)", path, err)
	}
	socket := plain.(*net.UnixConn)
	uid, err := peerUID(socket)
	if err != nil || uid != os.Geteuid() {
		socket.Close()
		return nil, failure(ErrUntrusted, false, err, "%s belongs to uid %d, not to you (%d); nothing was sent", path, uid, os.Geteuid())
	}
	opened := &connection{path: path, socket: socket, notes: make(chan note, notificationRoom), ended: make(chan struct{}), waiting: map[uint32]chan answer{}}
	go opened.read()
	return opened, nil
}

// close ends it; requests under way are answered with connection_lost.
func (c *connection) close() {
	c.lose(failure(ErrConnectionLost, true, nil, "%s: closed by this client", c.path))
}

// alive is whether it can be used.
func (c *connection) alive() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.lost == nil
}

// call sends a request and waits for its reply.
func (c *connection) call(ctx context.Context, method string, params any) (msgpack.RawMessage, error) {
	msgid, replies, err := c.expect()
	if err != nil {
		return nil, err
	}
	if err := c.send([]any{request, msgid, method, []any{params}}); err != nil {
		c.forget(msgid)
		return nil, err
	}
	select {
	case found := <-replies:
		if found.err != nil {
			return nil, found.err
		}
		return found.result, nil
	case <-ctx.Done():
		c.forget(msgid)
		_ = c.send([]any{notification, "rpc.cancel", []any{map[string]any{"msgid": msgid}}}) // nobody waits any more
		return nil, failure(ErrTimeout, true, ctx.Err(), "no reply to %s in time", method)
	}
}

func (c *connection) expect() (uint32, chan answer, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.lost != nil {
		gone := *c.lost
		gone.sent = false
		return 0, nil, &gone
	}
	c.last++
	replies := make(chan answer, 1)
	c.waiting[c.last] = replies
	return c.last, replies, nil
}

func (c *connection) forget(msgid uint32) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.waiting, msgid)
}

func (c *connection) send(message []any) error {
	data, err := msgpack.Marshal(message)
	if err != nil {
		return &Error{Name: "invalid_params", Message: err.Error(), Data: map[string]any{}, cause: err}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.socket.Write(data); err != nil { // a message that was cut is never carried out
		lost := failure(ErrConnectionLost, false, err, "%s: %v", c.path, err)
		c.lose(lost)
		return lost
	}
	return nil
}

// read hands on what comes until the end.
func (c *connection) read() {
	decoder := msgpack.NewDecoder(bufio.NewReaderSize(c.socket, 64<<10))
	for {
		if err := c.receive(decoder); err != nil {
			if errors.Is(err, io.EOF) {
				c.lose(failure(ErrConnectionLost, true, err, "%s: memd closed the connection", c.path))
			} else {
				c.lose(failure(ErrConnectionLost, true, err, "%s: %v", c.path, err))
			}
			return
		}
	}
}

func (c *connection) receive(decoder *msgpack.Decoder) error {
	parts, err := decoder.DecodeArrayLen()
	if err != nil {
		return err
	}
	kind, err := decoder.DecodeInt()
	if err != nil {
		return err
	}
	switch {
	case kind == reply && parts == 4:
		return c.takeReply(decoder)
	case kind == notification && parts == 3:
		return c.takeNote(decoder)
	}
	for ; parts > 1; parts-- { // of no kind this client knows
		if err := decoder.Skip(); err != nil {
			return err
		}
	}
	return nil
}

func (c *connection) takeReply(decoder *msgpack.Decoder) error {
	msgid, err := decoder.DecodeUint32()
	if err != nil {
		return err
	}
	problem, err := decoder.DecodeInterface()
	if err != nil {
		return err
	}
	result, err := decoder.DecodeRaw()
	if err != nil {
		return err
	}
	found := answer{result: result}
	if problem != nil {
		found = answer{err: fromWire(problem)}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if replies, ok := c.waiting[msgid]; ok {
		delete(c.waiting, msgid)
		replies <- found
	}
	return nil
}

func (c *connection) takeNote(decoder *msgpack.Decoder) error {
	var found note
	var err error
	if found.method, err = decoder.DecodeString(); err != nil {
		return err
	}
	if err = decoder.Decode(&found.params); err != nil {
		return err
	}
	if found.method == "rpc.protocol_error" {
		return c.protocolError(found)
	}
	select {
	case c.notes <- found:
	default: // nobody reads them: a connection for calls only
	}
	return nil
}

// protocolError is the last word of a daemon that cannot read on.
func (c *connection) protocolError(found note) error {
	if len(found.params) == 0 {
		return nil
	}
	var body any
	if err := msgpack.Unmarshal(found.params[0], &body); err != nil {
		return err
	}
	problem := fromWire(body)
	if problem.Is(ErrTooManyRequests) { // refused as a whole: nothing was taken
		c.lose(problem)
	}
	return nil
}

// lose ends the connection for everybody who waits. The first reason stays.
func (c *connection) lose(reason *Error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.lost != nil {
		return
	}
	c.lost = reason
	c.socket.Close()
	for msgid, replies := range c.waiting {
		delete(c.waiting, msgid)
		replies <- answer{err: reason}
	}
	close(c.ended)
}
