/**
 * The clock of a program with several parts (instrument.ts). Out: functions for the tables of the parts, which tell
 * times that are greater at each call, and the order of activations by their times. Invariant: the parts of a program
 * share one clock, so times of different parts can be compared.
 */
import { type ExternTable, NewEngine } from "@waft/engine";
import { ELEMENT } from "./instrument.ts";

/**
 * `next` tells the time of an activation that goes on. `begin` tells that of one that begins, and the time since which
 * all other activations have ended: its own, or that which `leave` has told of the one that it replaces.
 */
const CLOCK = `(module
  (global $time (mut i64) (i64.const 0))
  (global $left (mut i64) (i64.const 0))
  (func $next (export "next") (result i64)
    (global.set $left (i64.const 0))
    (global.set $time (i64.add (global.get $time) (i64.const 1)))
    (global.get $time))
  (func (export "begin") (result i64 i64) (local $since i64)
    (local.set $since (global.get $left))
    (call $next)
    (select (local.get $since) (global.get $time) (i64.ne (local.get $since) (i64.const 0))))
  (func (export "leave") (param $since i64) (global.set $left (local.get $since))))`;

/** A clock. Its functions are of WebAssembly: code under the debugger calls them at each call and return. */
export class ActivationClock {
  readonly #functions: Readonly<Record<string, unknown>> = NewEngine().compile(CLOCK).instantiate({}).exports;

  /** Puts the functions into the table of a part. */
  install(table: ExternTable): void {
    const { next, begin, leave } = this.#functions;
    table.set(ELEMENT.NEXT, next);
    table.set(ELEMENT.BEGIN, begin);
    table.set(ELEMENT.LEAVE, leave);
  }
}

/** The times of an activation. */
export interface Times {
  readonly begun: bigint;
  /** When it went on last after a call; 0: never. Activations that began between the two have ended. */
  readonly resumed: bigint;
  /** Activations that began from this time on, and before it, have ended: it has replaced one by a tail call. */
  readonly since: bigint;
}

/**
 * The stack, from the innermost activation on; `all` are those that have records in any part. Some of them may have
 * ended, where a call has entered a part through a table, or left it by an exception: the times of others tell so. With
 * `innermost`, the stack is that of this activation: those that began later are on other stacks.
 */
export function stackOf<T extends Times>(all: readonly T[], innermost?: T): T[] {
  const stack: T[] = [];
  let resumed = 0n;
  const older = innermost === undefined ? all : all.filter(({ begun }) => begun < innermost.begun);
  const sorted = older.toSorted((a, b) => a.begun < b.begun ? -1 : 1);
  for (const activation of innermost === undefined ? sorted : [...sorted, innermost]) {
    if (activation.begun < resumed) continue;
    while (stack.length > 0 && stack[stack.length - 1].begun >= activation.since) stack.pop();
    stack.push(activation);
    if (activation.resumed > resumed) resumed = activation.resumed;
  }
  return stack.reverse();
}
