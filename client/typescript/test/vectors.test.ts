import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { decode } from "@msgpack/msgpack";
import type { Socket } from "node:net";
import { fenced, type Fence, MemdError, Scrubber } from "../src/index.js";
import { packed, Wire } from "../src/wire.js";

function vectors(name: string): any {
  return JSON.parse(readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "utf8"));
}

/** A socket that keeps what is sent and says what it is told to. */
class Peer extends Duplex {
  override _read(): void {}
  override _write(_data: Buffer, _encoding: string, done: () => void): void {
    done();
  }
  ref(): void {}
  unref(): void {}
}

/** What a waiting call hears of these bytes: whole, byte by byte, and with more behind them. */
async function heard(data: Buffer, msgid: number): Promise<unknown[]> {
  const ways = [[data], [...data].map((byte) => Buffer.from([byte])), [Buffer.concat([data, data])]];
  return Promise.all(
    ways.map(async (chunks) => {
      const peer = new Peer();
      const wire = new Wire(peer as unknown as Socket, "vectors");
      const replies = Array.from({ length: msgid }, () => wire.call("rpc.ping", {}, new AbortController().signal).catch((e) => e));
      for (const chunk of chunks) peer.push(chunk);
      return replies[msgid - 1];
    }),
  );
}

test("messages of the server", async () => {
  const messages = vectors("messages").messages.filter((one: { from: string }) => one.from === "server");
  assert.ok(messages.length > 0);
  for (const { name, hex, gives, value } of messages) {
    const data = Buffer.from(hex, "hex");
    if (gives === "notification") {
      for (const chunks of [[data], [...data].map((byte) => Buffer.from([byte])), [Buffer.concat([data, data])]]) {
        const peer = new Peer();
        const wire = new Wire(peer as unknown as Socket, "vectors");
        wire.onNote = () => undefined;
        for (const chunk of chunks) peer.push(chunk);
        await new Promise((done) => setImmediate(() => setImmediate(done)));
        if (value[1] !== "rpc.protocol_error") assert.equal(wire.notes[0]?.method, value[1], name);
      }
      continue;
    }
    for (const found of await heard(data, value[1])) {
      if (gives === "reply") assert.deepEqual(found, value[3], name);
      else assert.ok(found instanceof MemdError, name);
    }
  }
});

test("requests mean the same again", () => {
  for (const { name, from, gives, value } of vectors("messages").messages) {
    if (from === "client" && gives === "request" && value) assert.deepEqual(decode(packed(value)), value, name);
  }
});

test("errors of the protocol", async () => {
  for (const { name, code, retryable, map, pair } of vectors("errors").errors) {
    for (const found of await heard(Buffer.from(map.hex, "hex"), 5)) {
      assert.ok(found instanceof MemdError);
      assert.deepEqual([found.name, found.code, found.retryable], [name, code, retryable]);
    }
    for (const found of await heard(Buffer.from(pair.hex, "hex"), 5)) assert.ok((found as MemdError).message.startsWith(name));
  }
});

test("the scrubber", () => {
  type Stream = { name: string; fence: Fence; chunks: string[]; gives: string[]; out: string };
  for (const { name, fence, chunks, gives, out } of vectors("scrubber").scrubber as Stream[]) {
    const scrubber = new Scrubber(fence);
    assert.deepEqual([...chunks.map((chunk) => scrubber.feed(chunk)), scrubber.close()], gives, name);
    const whole = chunks.join("");
    assert.equal([...whole].map((letter) => scrubber.feed(letter)).join("") + scrubber.close(), out, name);
    for (let at = 0; at <= whole.length; at++) {
      assert.equal(scrubber.feed(whole.slice(0, at)) + scrubber.feed(whole.slice(at)) + scrubber.close(), out, `${name} at ${at}`);
    }
  }
  for (const { name, text, fence, out } of vectors("scrubber").fenced) assert.equal(fenced(text, fence), out, name);
});
