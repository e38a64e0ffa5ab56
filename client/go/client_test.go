package memd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// home is a directory of its own for a daemon of its own; MEMD_BIN says which memd is tested.
type home struct {
	t   *testing.T
	dir string
}

func newHome(t *testing.T) *home {
	t.Helper()
	if os.Getenv("MEMD_BIN") == "" {
		t.Fatal("MEMD_BIN is not set: it names the memd to test with")
	}
	dir, err := os.MkdirTemp("/tmp", "memd-go-") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	found := &home{t, dir}
	t.Cleanup(func() {
		found.memd("stop")
		os.RemoveAll(dir)
	})
	return found
}

func (h *home) env(name string) string {
	switch name {
	case "HOME":
		return h.dir
	case "MEMD_BIN":
		return os.Getenv(name)
	case "PATH":
		return os.Getenv(name)
	}
	return ""
}

func (h *home) memd(arguments ...string) string {
	command := exec.Command(os.Getenv("MEMD_BIN"), arguments...)
	command.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	output, _ := command.CombinedOutput()
	return string(output)
}

func (h *home) client() *Client {
	client := New(Options{Name: "go-test", Timeout: time.Minute, Env: h.env, Start: func(context.Context) (string, error) {
		path := strings.TrimSpace(h.memd("socket", "--start"))
		if !filepath.IsAbs(path) {
			return "", failure(ErrNotRunning, false, nil, "%s", path)
		}
		return path, nil
	}})
	h.t.Cleanup(func() { client.Close() })
	return client
}

func add(t *testing.T, client *Client, text string) Mutation {
	t.Helper()
	found, err := client.MemoryAdd(context.Background(), MemoryAddParams{Target: "memory", Content: text})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func texts(t *testing.T, client *Client) []string {
	t.Helper()
	found, err := client.MemoryRead(context.Background(), MemoryReadParams{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, entry := range found.Stores.Memory.Entries {
		texts = append(texts, entry.Text)
	}
	return texts
}

func TestCertified(t *testing.T) {
	if err := Certify(context.Background(), newHome(t).client()); err != nil {
		t.Fatal(err)
	}
}

func TestASession(t *testing.T) {
	ctx, client := context.Background(), newHome(t).client()
	opened, err := client.SessionOpen(ctx, SessionOpenParams{Key: "go:1"})
	if err != nil {
		t.Fatal(err)
	}
	added, err := client.MemoryAdd(ctx, MemoryAddParams{Target: "user", Content: "Prefers Go", Session: opened.Session})
	if err != nil || !added.Changed || added.Entry == nil || added.Entry.Text != "Prefers Go" {
		t.Fatal(added, err)
	}
	shown, err := client.SessionSnapshot(ctx, SessionSnapshotParams{Session: opened.Session})
	if err != nil || !shown.Stale || !strings.Contains(shown.ChangesText, "Prefers Go") {
		t.Fatal(shown, err)
	}
	if _, err := client.SessionClose(ctx, SessionCloseParams{Session: opened.Session}); err != nil {
		t.Fatal(err)
	}
	tool, err := client.MemoryToolSchema(ctx, MemoryToolSchemaParams{})
	if err != nil || tool["function"] == nil {
		t.Fatal(tool, err)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	client := newHome(t).client()
	_, err := client.MemoryRemove(context.Background(), MemoryRemoveParams{Target: "memory", OldText: "nowhere"})
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	if found := asError(err); found.Outcome() != "none" || found.Code != ErrNotFound.Code || found.Message == "" {
		t.Fatalf("%+v", found)
	}
	err = client.Call(context.Background(), "memory.nothing", nil, nil)
	if !errors.Is(err, ErrMethodNotFound) {
		t.Fatal(err)
	}
}

func TestNobodyThere(t *testing.T) {
	client := New(Options{Env: newHome(t).env, NoAutostart: true})
	_, err := client.Hello(context.Background())
	if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "memd.sock") {
		t.Fatal(err)
	}
}

func TestADeadlineHolds(t *testing.T) {
	client := newHome(t).client()
	add(t, client, "connects")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := client.EventsWait(ctx, EventsWaitParams{TimeoutMS: 600_000})
	if err == nil {
		t.Fatal("a wait of ten minutes ended early without an error")
	}
	add(t, client, "and goes on") // the same connection
}

func TestManyAtOnce(t *testing.T) {
	client := newHome(t).client()
	var group sync.WaitGroup
	for n := 0; n < 40; n++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			_, err := client.MemoryAdd(context.Background(), MemoryAddParams{Target: "memory", Content: fmt.Sprintf("fact %d", n)})
			if err != nil {
				t.Error(err)
			}
		}(n)
	}
	group.Wait()
	if found := texts(t, client); len(found) != 40 {
		t.Fatal(len(found), found)
	}
}

func TestAKilledDaemonLosesAndDoublesNothing(t *testing.T) {
	home := newHome(t)
	client := home.client()
	add(t, client, "fact 0")
	done := make(chan bool)
	go func() {
		defer close(done)
		for n := 1; n <= 30; n++ {
			add(t, client, fmt.Sprintf("fact %d", n))
		}
	}()
	for range 3 {
		hello, err := home.client().Hello(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if process, err := os.FindProcess(int(hello.Server.PID)); err == nil {
			process.Kill()
		}
		time.Sleep(100 * time.Millisecond)
	}
	<-done
	if found := texts(t, client); len(found) != 31 {
		t.Fatal(len(found), found)
	}
}

func TestEventsGoOnAfterARestart(t *testing.T) {
	home := newHome(t)
	client := home.client()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stream, err := client.Events(ctx, nil, TopicMemoryChanged)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	add(t, client, "before")
	home.memd("stop")
	add(t, client, "after")
	for _, expected := range []string{"before", "after"} {
		event, err := stream.Next(ctx)
		if err != nil || event.Topic != TopicMemoryChanged {
			t.Fatal(expected, event, err)
		}
	}
}
