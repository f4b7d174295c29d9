/**
 * `waft:self@1`, always linked: configuration, log and abort; and `waft:hooks@1`: the subject of a running hook.
 *
 * In: a plugin. Out: its functions. Each log call writes one line on the host's side, truncated and with hostile
 * characters escaped, so no plugin can forge another plugin's line.
 */
import { TrapError } from "@waft/engine";
import { STATUS } from "../definitions/authorities.ts";
import { escapeHostile } from "../base/diagnostic.ts";
import { type HostFunctionGroup, StatusError } from "./node.ts";

/** Maximum bytes of a log line or abort message; the rest is cut. */
export const MAX_LINE = 4096;

/** Names of log levels by number. */
export const LOG_LEVELS = ["error", "warn", "info", "debug", "trace"] as const;

/** Functions of `waft:self@1`. */
export const selfFunctions: HostFunctionGroup = (node) => {
  const line = (at: number, length: number): string => {
    const bytes = node.memory.bytes(at, length);
    return escapeHostile(new TextDecoder().decode(bytes.subarray(0, MAX_LINE)));
  };
  return {
    "config-size": () => node.plugin.config.length,
    "config-read": (at: number, room: number) => node.memory.fill(at, room, node.plugin.config),
    log: (level: number, at: number, length: number) => {
      node.services.log(node.plugin.id, Math.min(level >>> 0, LOG_LEVELS.length - 1), line(at, length));
    },
    abort: (at: number, length: number) => {
      let text: string;
      try {
        text = line(at, length);
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        text = "(its message is not in its memory)";
      }
      throw new TrapError(`abort: ${text}`);
    },
  };
};

/** Functions of `waft:hooks@1`. */
export const hookFunctions: HostFunctionGroup = (node) => {
  const subject = (): Uint8Array => {
    if (node.services.subject === undefined) throw new StatusError(STATUS.missing);
    return new TextEncoder().encode(node.services.subject);
  };
  return {
    "subject-size": () => subject().length,
    "subject-read": (at: number, room: number) => node.memory.fill(at, room, subject()),
  };
};
