/** Errors: those of the protocol, and the four of the connection. */

/** An error of the protocol by its stable `name`, or `not_running`, `untrusted`, `connection_lost`, `timeout`. */
export class MemdError extends Error {
  override readonly name: string;

  /**
   * @param data What is needed to act; of a mutation, `outcome` says whether something may have changed.
   * @param sent Whether the daemon may have seen the request.
   */
  constructor(
    name: string,
    message: string,
    readonly code = 0,
    readonly retryable = false,
    readonly data: Record<string, unknown> = {},
    readonly sent = false,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = name;
  }

  /** Of a mutation: `none`, or `unknown` if something may have changed. */
  get outcome(): string | undefined {
    return this.data["outcome"] as string | undefined;
  }

  /** This error with more data. */
  with(data: Record<string, unknown>): MemdError {
    const all = { ...this.data, ...data };
    return new MemdError(this.name, this.message, this.code, this.retryable, all, this.sent, { cause: this.cause });
  }
}

/** An error of the connection. */
export function trouble(name: string, message: string, sent: boolean, cause?: unknown): MemdError {
  return new MemdError(name, message, 0, !sent, {}, sent, { cause });
}

/** The error of a reply, in the map form or the pair form. */
export function fromWire(value: unknown): MemdError {
  if (Array.isArray(value)) return new MemdError("", String(value[1]), Number(value[0]));
  const map = (value ?? {}) as Record<string, unknown>;
  const data = (map["data"] ?? {}) as Record<string, unknown>;
  return new MemdError(String(map["name"]), String(map["message"]), Number(map["code"]), map["retryable"] === true, data);
}
