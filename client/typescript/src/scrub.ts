/** The fence: recalled text goes into a prompt inside it, and is taken out of what the model says. */

import type { Fence } from "./generated.js";

/** Recalled text for the user turn, between the session's two marks; "" for no text. Marks inside the text are taken out. */
export function fenced(text: string, fence: Fence): string {
  check(fence);
  while (text.includes(fence.open) || text.includes(fence.close)) {
    text = text.replaceAll(fence.open, "").replaceAll(fence.close, ""); // what is left may join to another
  }
  return text ? `${fence.open}\n${text}\n${fence.close}` : "";
}

/**
 * Takes a session's blocks out of a stream, in chunks of any size. A block is an opening mark, text without marks, and a closing
 * mark; all else is the model's own and comes out as it came in. An opening mark before a backtick is quoted and begins nothing.
 */
export class Scrubber {
  #block = ""; // from an opening mark on; empty outside
  #tail = ""; // the end of what has arrived, if a mark may begin there

  constructor(readonly fence: Fence) {
    check(fence);
  }

  /** The part of what has arrived that is surely the model's own and was not given before. */
  feed(chunk: string): string {
    let text = this.#tail + chunk;
    let own = "";
    for (let [at, mark] = this.#next(text); at >= 0; [at, mark] = this.#next(text)) {
      const before = text.slice(0, at);
      text = text.slice(at + mark.length);
      if (mark === this.fence.close) {
        this.#block = "";
        continue;
      }
      own += this.#block + before; // outside, or an opening mark that nothing has closed
      this.#block = mark;
    }
    const end = text.length - this.#uncertain(text);
    if (this.#block) this.#block += text.slice(0, end);
    else own += text.slice(0, end);
    this.#tail = text.slice(end);
    return own;
  }

  /** The rest: a block that was never closed is the model's own. Afterwards a new stream begins. */
  close(): string {
    const rest = this.#block + this.#tail;
    this.#block = this.#tail = "";
    return rest;
  }

  #next(text: string): [number, string] {
    const opening = this.#opening(text);
    if (!this.#block) return [opening, this.fence.open];
    const closing = text.indexOf(this.fence.close);
    return closing >= 0 && (opening < 0 || closing < opening) ? [closing, this.fence.close] : [opening, this.fence.open];
  }

  #opening(text: string): number {
    for (let at = text.indexOf(this.fence.open); at >= 0; at = text.indexOf(this.fence.open, at + 1)) {
      const after = text[at + this.fence.open.length];
      if (after === undefined) return -1; // what follows has to be known
      if (after !== "`") return at;
    }
    return -1;
  }

  #uncertain(text: string): number {
    const { open, close } = this.fence;
    for (let length = Math.min(text.length, Math.max(open.length, close.length)); length > 0; length--) {
      const end = text.slice(-length);
      if (open.startsWith(end) || (this.#block && close.startsWith(end))) return length;
    }
    return 0;
  }
}

function check({ open, close }: Fence): void {
  if (!open || !close || open.includes(close) || close.includes(open)) {
    throw new RangeError(`fence: ${open} and ${close} cannot be told apart; hand over the fence of sessionOpen as it came`);
  }
}
