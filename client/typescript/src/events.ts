/** Events as they happen, over restarts of the daemon. */

import { MemdError } from "./errors.js";
import type { Event, HelloResult, Topic } from "./generated.js";
import type { Wire } from "./wire.js";

const PAUSE_MS = 100;

type Opener = (signal: AbortSignal, mayStart: boolean) => Promise<{ wire: Wire; hello: HelloResult }>;

/** `for await` over it; `seq` is that of the last event seen. `events.lost` says that some could not be kept. */
export class EventStream implements AsyncIterable<Event> {
  seq: number | undefined;
  #wire!: Wire;
  #gap: Event | undefined;
  #closed = false;
  #wake: (() => void) | undefined;

  private constructor(
    readonly open: Opener,
    readonly topics: Topic[],
    readonly timeoutMs: number,
  ) {}

  static async open(open: Opener, topics: Topic[], since: number | undefined, timeoutMs: number): Promise<EventStream> {
    const stream = new EventStream(open, topics, timeoutMs);
    stream.seq = since;
    await stream.#subscribe(true);
    return stream;
  }

  /** End the stream; an iteration under way ends too. */
  close(): void {
    this.#closed = true;
    this.#wire.close();
    this.#wake?.();
  }

  /** The next event; undefined once the stream is closed. */
  async next(): Promise<Event | undefined> {
    for (;;) {
      const gap = this.#gap;
      this.#gap = undefined;
      if (gap) return gap;
      const note = this.#wire.notes.shift();
      const event = note?.method === "event" ? (note.params[0] as Event) : undefined;
      if (event && (event.topic === "events.lost" || event.seq > (this.seq ?? -1))) {
        this.seq = Math.max(event.seq, this.seq ?? 0);
        return event;
      }
      if (note) continue;
      if (this.#closed) return undefined;
      if (this.#wire.lost) await this.#resubscribe();
      else await new Promise<void>((done) => (this.#wake = done));
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    try {
      for (let event = await this.next(); event; event = await this.next()) yield event;
    } finally {
      this.close();
    }
  }

  async #resubscribe(): Promise<void> {
    for (const until = Date.now() + this.timeoutMs; ; ) {
      try {
        return await this.#subscribe(false);
      } catch (error) {
        const gone = ["not_running", "connection_lost", "shutting_down"].includes((error as Error).name);
        if (!(error instanceof MemdError) || !gone || Date.now() >= until) throw error;
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  }

  async #subscribe(mayStart: boolean): Promise<void> {
    const signal = AbortSignal.timeout(this.timeoutMs);
    const { wire, hello } = await this.open(signal, mayStart);
    wire.onNote = () => this.#wake?.();
    this.#wire = wire;
    const reply = (await wire.call("events.subscribe", { topics: this.topics, since_seq: this.seq }, signal)) as {
      seq: number;
      lost: boolean;
    };
    if (reply.lost) {
      this.#gap = { seq: reply.seq, at: "", us: 0, topic: "events.lost", profile: hello.profile, data: { since_seq: this.seq } };
    }
    this.seq ??= reply.seq;
  }
}
