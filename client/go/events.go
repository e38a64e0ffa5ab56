package memd

import (
	"context"
	"errors"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Events is a stream of events over a connection of its own. After a restart of the daemon it goes on where it was.
type Events struct {
	client *Client
	topics []string

	mutex sync.Mutex
	since *int64
	gap   *Event // what the journal could not replay, to be told first
	wire  *connection
}

// Events subscribes to these topics, or to all. With since, what came after that event's seq comes first.
func (c *Client) Events(ctx context.Context, since *int64, topics ...string) (*Events, error) {
	stream := &Events{client: c, topics: append([]string{}, topics...), since: since}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	if err := stream.subscribe(ctx, !c.options.NoAutostart); err != nil {
		return nil, err
	}
	return stream, nil
}

// Next waits for the next event, as long as ctx lasts, over restarts of the daemon. An event with the topic events.lost says that some
// could not be kept: read the stores again.
func (e *Events) Next(ctx context.Context) (Event, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for {
		if e.gap != nil {
			gap := *e.gap
			e.gap = nil
			return gap, nil
		}
		event, lost, err := e.next(ctx)
		if !lost {
			return event, err
		}
		if err := e.resubscribe(ctx); err != nil {
			return Event{}, err
		}
	}
}

// Close ends the stream.
func (e *Events) Close() error {
	e.wire.close()
	return nil
}

func (e *Events) next(ctx context.Context) (event Event, lost bool, err error) {
	for {
		var found note
		select {
		case found = <-e.wire.notes:
		case <-ctx.Done():
			return event, false, ctx.Err()
		case <-e.wire.ended:
			select { // what had come before the end
			case found = <-e.wire.notes:
			default:
				return event, true, nil
			}
		}
		if found.method != "event" || len(found.params) != 1 {
			continue
		}
		if err := msgpack.Unmarshal(found.params[0], &event); err != nil {
			return event, false, err
		}
		if e.since != nil && event.Seq <= *e.since && event.Topic != TopicEventsLost {
			event = Event{}
			continue // replayed and live at once
		}
		seq := max(event.Seq, *e.since)
		e.since = &seq
		return event, false, nil
	}
}

func (e *Events) resubscribe(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := e.subscribe(ctx, false)
		gone := errors.Is(err, ErrNotRunning) || errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrShuttingDown)
		if err == nil || !gone {
			return err
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

func (e *Events) subscribe(ctx context.Context, mayStart bool) error {
	wire, hello, err := e.client.open(ctx, mayStart)
	if err != nil {
		return err
	}
	params := EventsSubscribeParams{Topics: e.topics, SinceSeq: e.since}
	raw, err := wire.call(ctx, "events.subscribe", params)
	if err != nil {
		wire.close()
		return err
	}
	var answered Subscribed
	if err := decode(raw, &answered); err != nil {
		wire.close()
		return err
	}
	if answered.Lost {
		e.gap = &Event{Seq: answered.Seq, Topic: TopicEventsLost, Profile: hello.Profile, Data: map[string]any{}}
	}
	if e.since == nil {
		e.since = &answered.Seq
	}
	e.wire = wire
	return nil
}
