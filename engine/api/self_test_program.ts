/**
 * The self-test of the engine on this machine, as a program: compiles a module and runs the parts that depend most on
 * the system. Started by host/self_check.ts. Ends with status 0, with an error, or with a crash.
 */
import { NewEngine, TrapError } from "../mod.ts";

const TEXT = `(module
  (import "host" "twice" (func $twice (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "waft")
  (func (export "call") (param i32) (result i32) (i32.add (call $twice (local.get 0)) (i32.const 1)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "grow") (result i32) (memory.grow (i32.const 300)))
  (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 7) (local.get 0)))
  (func $deep (export "deep") (call $deep))
  (func (export "spin") (loop (br 0))))`;

/** Requires that two values are the same. */
function same(name: string, found: unknown, expected: unknown): void {
  if (found !== expected) throw new Error(`${name} gave ${found}, not ${expected}`);
}

/** The code of the trap that an action ends with. */
function trapOf(action: () => unknown): string {
  try {
    action();
    return "no trap";
  } catch (error) {
    if (error instanceof TrapError) return error.code;
    throw error;
  }
}

const module = NewEngine({ interruptible: true }).compile(TEXT);
const instance = module.instantiate({}, { host: { twice: (n: number) => 2 * n } });
const call = (name: string, ...args: number[]) => instance.call({}, name, ...args);
same("a call", call("call", 20), 41);
same("a load", call("load", 0), 0x74666177);
same("an access beyond the memory", trapOf(() => call("load", -4)), "memory-out-of-bounds");
same("growing the memory", call("grow"), 1);
same("a load beyond the old end", call("load", 300 * 65536), 0);
same("a division by zero", trapOf(() => call("divide", 0)), "integer-divide-by-zero");
same("an endless recursion", trapOf(() => call("deep")), "stack-exhausted");
same("a deadline", trapOf(() => instance.call({ deadline: 50 }, "spin")), "interrupted");
same("a call after traps", call("call", 1), 3);
