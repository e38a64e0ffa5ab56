package memd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/vmihailenco/msgpack/v5"
)

func vectors(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile("../vectors/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func fromHex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// plain makes values of JSON and of MessagePack comparable.
func plain(value any) any {
	data, _ := json.Marshal(value)
	var again any
	_ = json.Unmarshal(data, &again)
	return again
}

// heard feeds bytes to a connection that waits for msgid and gives what came of it.
func heard(t *testing.T, reader io.Reader, msgid uint32, messages int) (found []answer, notes []note) {
	t.Helper()
	replies := make(chan answer, messages)
	c := &connection{notes: make(chan note, messages), ended: make(chan struct{}), waiting: map[uint32]chan answer{}}
	decoder := msgpack.NewDecoder(reader)
	for range messages {
		c.waiting[msgid] = replies
		if err := c.receive(decoder); err != nil {
			t.Fatal(err)
		}
	}
	for len(replies) > 0 {
		found = append(found, <-replies)
	}
	for len(c.notes) > 0 {
		notes = append(notes, <-c.notes)
	}
	return found, notes
}

// ways gives the bytes whole, byte by byte, and with the same once more behind them.
func ways(data []byte) map[string]struct {
	io.Reader
	times int
} {
	return map[string]struct {
		io.Reader
		times int
	}{
		"whole":        {bytes.NewReader(data), 1},
		"byte by byte": {iotest.OneByteReader(bytes.NewReader(data)), 1},
		"twice":        {bytes.NewReader(append(append([]byte{}, data...), data...)), 2},
	}
}

func TestMessagesOfTheServer(t *testing.T) {
	var file struct {
		Messages []struct {
			Name, From, Hex, Gives string
			Value                  []any
		}
	}
	vectors(t, "messages", &file)
	seen := 0
	for _, message := range file.Messages {
		if message.From != "server" {
			continue
		}
		seen++
		for way, reader := range ways(fromHex(t, message.Hex)) {
			msgid := uint32(0)
			if message.Gives != "notification" {
				msgid = uint32(message.Value[1].(float64))
			}
			replies, notes := heard(t, reader, msgid, reader.times)
			switch message.Gives {
			case "notification":
				if message.Value[1] != "rpc.protocol_error" && (len(notes) != reader.times || notes[0].method != message.Value[1]) {
					t.Error(message.Name, way, notes)
				}
			case "reply", "error":
				if len(replies) != reader.times || (replies[0].err != nil) != (message.Gives == "error") {
					t.Fatal(message.Name, way, replies)
				}
				if message.Gives == "reply" {
					var result any
					if err := msgpack.Unmarshal(replies[0].result, &result); err != nil || !reflect.DeepEqual(plain(result), message.Value[3]) {
						t.Error(message.Name, way, result, err)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Fatal("no message of the server in the vectors")
	}
}

func TestRequestsMeanTheSameAgain(t *testing.T) {
	var file struct {
		Messages []struct {
			Name, From, Gives string
			Value             []any
		}
	}
	vectors(t, "messages", &file)
	for _, message := range file.Messages {
		if message.From != "client" || message.Gives != "request" || message.Value == nil {
			continue
		}
		data, err := msgpack.Marshal(message.Value)
		var again any
		if err == nil {
			err = msgpack.Unmarshal(data, &again)
		}
		if err != nil || !reflect.DeepEqual(plain(again), plain(message.Value)) {
			t.Error(message.Name, again, err)
		}
	}
}

func TestErrorsOfTheProtocol(t *testing.T) {
	type form struct{ Hex string }
	var file struct {
		Errors []struct {
			Name      string
			Code      int
			Retryable bool
			Map, Pair form
		}
	}
	vectors(t, "errors", &file)
	for _, expected := range file.Errors {
		for way, reader := range ways(fromHex(t, expected.Map.Hex)) {
			replies, _ := heard(t, reader, 5, reader.times)
			found := replies[0].err
			if found.Name != expected.Name || found.Code != expected.Code || found.Retryable != expected.Retryable || found.Message == "" {
				t.Error(expected.Name, way, found)
			}
		}
		replies, _ := heard(t, bytes.NewReader(fromHex(t, expected.Pair.Hex)), 5, 1)
		if replies[0].err.Message == "" {
			t.Error(expected.Name, "as a pair")
		}
	}
}

func TestScrubber(t *testing.T) {
	var file struct {
		Scrubber []struct {
			Name, Out     string
			Fence         Fence
			Chunks, Gives []string
		}
		Fenced []struct {
			Name, Text, Out string
			Fence           Fence
		}
	}
	vectors(t, "scrubber", &file)
	for _, one := range file.Scrubber {
		scrubber := NewScrubber(one.Fence)
		var gives []string
		whole := ""
		for _, chunk := range one.Chunks {
			gives = append(gives, scrubber.Feed(chunk))
			whole += chunk
		}
		if gives = append(gives, scrubber.Close()); !reflect.DeepEqual(gives, one.Gives) {
			t.Errorf("%s: %q, expected %q", one.Name, gives, one.Gives)
		}
		single := ""
		for _, letter := range whole {
			single += scrubber.Feed(string(letter))
		}
		if single += scrubber.Close(); single != one.Out {
			t.Errorf("%s, letter by letter: %q", one.Name, single)
		}
		for at := range whole {
			if cut := scrubber.Feed(whole[:at]) + scrubber.Feed(whole[at:]) + scrubber.Close(); cut != one.Out {
				t.Errorf("%s, cut at %d: %q", one.Name, at, cut)
			}
		}
	}
	for _, one := range file.Fenced {
		if found := Fenced(one.Text, one.Fence); found != one.Out {
			t.Errorf("%s: %q", one.Name, found)
		}
	}
}
