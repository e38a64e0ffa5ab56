/** A thin client for memd. */

export { certify } from "./certify.js";
export { Client, type Options, VERSION } from "./client.js";
export { MemdError } from "./errors.js";
export { EventStream } from "./events.js";
export * from "./generated.js";
export { agentSockets, operatorSockets } from "./places.js";
export { fenced, Scrubber } from "./scrub.js";
