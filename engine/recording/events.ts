/**
 * The events of a recording, in the order of a run. In a log, each is its number followed by the fields named here;
 * `changes` are those of host_changes.ts, values are self-describing (values.ts), numbers are LEB128.
 *
 * Invariant: an event is in one chunk of the log, and replaying the events in order repeats the run.
 */
export const EVENT = {
  /**
   * The code (bit 0: it counts fuel; the other bits: its NaNs, an index of NAN_RULES), limits and imports of the
   * instance, changes; followed by READY or THREW.
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
} as const;

/** The names of the events, by number. */
export const EVENT_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(EVENT).map(([name, number]) => [number, name.toLowerCase()]),
);
