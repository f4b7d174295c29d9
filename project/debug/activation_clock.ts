/**
 * The clock of a program with several parts (instrument.ts). Out: a function for the tables of the parts, which returns
 * a greater number at each call, and the order of activations by their times. Invariant: the parts of a program share
 * one clock, so times of different parts can be compared.
 */
import { NewEngine } from "@waft/engine";

const CLOCK = `(module
  (global $time (mut i64) (i64.const 0))
  (func (export "next") (result i64)
    (global.set $time (i64.add (global.get $time) (i64.const 1)))
    (global.get $time)))`;

/** A clock. */
export class ActivationClock {
  /** The function, of WebAssembly: code under the debugger calls it at each call and return. */
  readonly next: unknown = NewEngine().compile(CLOCK).instantiate({}).exports.next;
}

/** The times of an activation: when it began, and when it went on last after a call; 0: never. */
export interface Times {
  readonly begun: bigint;
  readonly resumed: bigint;
}

/**
 * The stack, from the innermost activation on; `all` are those that have records in any part. Some of them may have
 * ended, where a call has entered a part through a table, or left it by an exception: an older activation has gone on
 * since then. With `innermost`, the stack is that of this activation: those that began later are on other stacks.
 */
export function stackOf<T extends Times>(all: readonly T[], innermost?: T): T[] {
  const stack: T[] = [];
  let resumed = 0n;
  const older = innermost === undefined ? all : all.filter(({ begun }) => begun < innermost.begun);
  for (const activation of older.toSorted((a, b) => a.begun < b.begun ? -1 : 1)) {
    if (activation.begun < resumed) continue;
    stack.push(activation);
    if (activation.resumed > resumed) resumed = activation.resumed;
  }
  if (innermost !== undefined) stack.push(innermost);
  return stack.reverse();
}
