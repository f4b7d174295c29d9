/**
 * The protocol between sockets.ts and socket_worker.ts: requests by message, replies by message or through shared
 * memory.
 *
 * A blocking requester reads two cells: [done, result]. Statuses are those of authorities.ts, repeated here so that the
 * thread loads little.
 */
import type { NetworkOptions } from "@waft/component/internal/wasi/network_grants";

/** Memory that both threads see, and the scopes of the plugin's grants. */
export interface SocketShare {
  readonly grants: Required<NetworkOptions>;
  readonly reply: SharedArrayBuffer;
  readonly data: SharedArrayBuffer;
  /** Timeout of an operation, in milliseconds. */
  readonly timeout: number;
}

/** A request. Fields that an operation does not use are 0 or empty. */
export interface SocketRequest {
  readonly operation: "connect" | "listen" | "accept" | "send" | "receive" | "close";
  readonly host: string;
  readonly port: number;
  readonly handle: number;
  readonly count: number;
  readonly tls?: boolean;
  /** The asker does not block: the result comes by message. */
  readonly byMessage?: boolean;
}

/** Statuses that the thread returns. */
export const STATUS_OF = { denied: 3, missing: 4, failed: 7, closed: 8 } as const;
