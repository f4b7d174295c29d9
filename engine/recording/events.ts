/**
 * The events of a recording, in the order of a run. In a log, each is its number followed by the fields named here;
 * `changes` are those of host_changes.ts, values are self-describing (values.ts), numbers are LEB128.
 *
 * Invariant: an event is in one chunk of the log, and replaying the events in order repeats the run.
 */
import type { ByteReader } from "../base/bytes.ts";
import { NAN_RULES, type NanRule } from "../settings/nans.ts";
import { STACK_RULES } from "../settings/code_settings.ts";

export const EVENT = {
  /**
   * The code (RecordedCode), limits and imports of the instance, changes; followed by READY or THREW, or by EXHAUSTED
   * and THREW.
   */
  BEGIN: 1,
  /** The segments have run. */
  READY: 2,
  /**
   * A call of an exported function: index, fuel left + 1 or 0 for no limit, depth left + 1 or 0, arguments, changes.
   */
  CALL: 3,
  /** The beginning of an asynchronous call: index, fuel of its context + 1 or 0, arguments, changes. */
  START: 4,
  /** The guest calls an import: index, arguments. */
  HOST: 5,
  /** The import returns: changes, results. */
  RETURN: 6,
  /** The import throws: changes, error. */
  THROW: 7,
  /** The import suspends the guest: number of the suspension, changes. */
  SUSPEND: 8,
  /** A suspended guest continues with results: number of the suspension, changes, results. */
  RESUME: 9,
  /** A suspended guest continues with an exception: number of the suspension, changes, error. */
  REJECT: 10,
  /** The innermost call has returned: number of the asynchronous call + 1 or 0, results. */
  DONE: 11,
  /** The innermost call has ended with an error: number as in DONE, error. */
  THREW: 12,
  /** The innermost call was interrupted at a poll: number as in DONE, fuel used since the host was in control. */
  INTERRUPTED: 13,
  /** An asynchronous call has ended while its code was not running: its number, error. */
  STOPPED: 14,
  /**
   * The host reads a reference that has not crossed before, from a global or a table: changes, index, position in the
   * table + 1 or 0.
   */
  TAKE: 15,
  /** The end: changes, fuel used by all calls, SHA-256 of the state (host_changes.ts). */
  END: 16,
  /**
   * The guest has exhausted its stack, which ends the innermost call; THREW follows. Fields: those of
   * exhaustion.ts.
   */
  EXHAUSTED: 17,
} as const;

/** The properties of recorded code. */
export interface RecordedCode {
  /** It counts fuel. */
  readonly fuel: boolean;
  readonly nans: NanRule;
  readonly stack: (typeof STACK_RULES)[number];
}

/** The bits of recorded code: fuel, two bits for the index of its NaNs, the index of its stack rule. */
const NANS_SHIFT = 1;
const STACK_SHIFT = 3;

/** Properties of code as a number. */
export function codeBits({ fuel, nans, stack }: RecordedCode): number {
  return (fuel ? 1 : 0) | NAN_RULES.indexOf(nans) << NANS_SHIFT | STACK_RULES.indexOf(stack) << STACK_SHIFT;
}

/** Reads properties of code. Throws MalformedError for unknown ones. */
export function readCode(reader: ByteReader): RecordedCode {
  const bits = reader.u8();
  const nans = NAN_RULES[(bits >> NANS_SHIFT) & 3] ?? reader.fail("unknown NaNs", reader.pos - 1);
  const stack = STACK_RULES[bits >> STACK_SHIFT] ?? reader.fail("an unknown rule for the stack", reader.pos - 1);
  return { fuel: (bits & 1) === 1, nans, stack };
}

/** The names of the events, by number. */
export const EVENT_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(EVENT).map(([name, number]) => [number, name.toLowerCase()]),
);
