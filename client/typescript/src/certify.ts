/** The certification of this client against a running daemon. */

import type { Client } from "./client.js";
import { MemdError } from "./errors.js";

/** Go through the sequence: each reply is the next call's argument. An error says which value did not survive. */
export async function certify(client: Client): Promise<void> {
  let given = (await client.request("rpc.certify.start")) as { id: string; value: unknown };
  for (const step of ["flag", "ints", "texts", "lists", "maps", "error", "end"]) {
    try {
      given = (await client.request(`rpc.certify.${step}`, given)) as typeof given;
    } catch (error) {
      if (!(error instanceof MemdError) || step !== "error" || error.name !== "conflict") throw error;
      given = { id: given.id, value: error.data["value"] };
    }
  }
  if (given.value !== "certified") throw new MemdError("invalid_reply", "the daemon did not certify this client");
}
