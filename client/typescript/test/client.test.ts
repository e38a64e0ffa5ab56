import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { certify, type Client, ERRORS, MemdError } from "../src/index.js";
import { Home } from "./home.js";

let home: Home;
beforeEach(() => {
  home = new Home();
});
afterEach(() => home.end());

async function texts(client: Client): Promise<string[]> {
  return (await client.memoryRead()).stores.memory?.entries.map((entry) => entry.text) ?? [];
}

test("certified", () => certify(home.client()));

test("a session, started from nothing", async () => {
  const client = home.client();
  const opened = await client.sessionOpen({ key: "node:1" });
  const added = await client.memoryAdd({ target: "user", content: "Prefers TypeScript", session: opened.session });
  assert.equal(added.entry?.text, "Prefers TypeScript");
  const shown = await client.sessionSnapshot({ session: opened.session });
  assert.ok(shown.stale && shown.changes_text.includes("Prefers TypeScript"));
  await client.sessionClose({ session: opened.session });
  assert.ok("function" in (await client.memoryToolSchema()));
});

test("errors are typed", async () => {
  const client = home.client();
  await assert.rejects(client.memoryRemove({ target: "memory", old_text: "nowhere" }), (error) => {
    assert.ok(error instanceof MemdError);
    assert.deepEqual([error.name, error.code, error.outcome], ["not_found", ERRORS.not_found, "none"]);
    return true;
  });
  await assert.rejects(client.request("memory.nothing"), { name: "method_not_found" });
});

test("nobody is there", async () => {
  await assert.rejects(home.client({ autostart: false }).hello(), { name: "not_running", message: /memd\.sock/ });
});

test("a deadline holds, and the connection stays", async () => {
  const client = home.client();
  await client.memoryAdd({ target: "memory", content: "first" });
  const { server } = await client.hello();
  const hurried = home.client({ timeoutMs: 1 });
  await assert.rejects(hurried.memoryAdd({ target: "memory", content: "late" }), (error: MemdError) =>
    ["timeout", "deadline_exceeded", "busy"].includes(error.name),
  );
  assert.equal((await client.hello()).server.instance, server.instance);
});

test("many calls at once", async () => {
  const client = home.client();
  await Promise.all(Array.from({ length: 40 }, (_, n) => client.memoryAdd({ target: "memory", content: `fact ${n}` })));
  assert.equal((await texts(client)).length, 40);
});

test("a killed daemon loses and doubles nothing", async () => {
  const client = home.client();
  await client.memoryAdd({ target: "memory", content: "fact 0" });
  const writing = (async () => {
    for (let n = 1; n <= 30; n++) await client.memoryAdd({ target: "memory", content: `fact ${n}` });
  })();
  for (let kill = 0; kill < 3; kill++) {
    process.kill((await home.client().hello()).server.pid, "SIGKILL");
    await new Promise((done) => setTimeout(done, 100));
  }
  await writing;
  assert.equal((await texts(client)).length, 31);
});

test("events go on after a restart", async () => {
  const client = home.client();
  const stream = await client.events(["memory.changed"]);
  await client.memoryAdd({ target: "memory", content: "before" });
  home.memd("stop");
  await client.memoryAdd({ target: "memory", content: "after" });
  const seen: number[] = [];
  for await (const event of stream) {
    assert.equal(event.topic, "memory.changed");
    if (seen.push(event.seq) === 2) break;
  }
  assert.ok((seen[1] as number) > (seen[0] as number));
});
