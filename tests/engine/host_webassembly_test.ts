/**
 * The host's own WebAssembly beside the engine: its bounds checks are faults of its own reservations, which the
 * engine's fault handlers must leave to it.
 */
import assert from "node:assert/strict";
import { encodeModule } from "../../engine/binary/encode.ts";
import { NewEngine } from "../../engine/mod.ts";

const ENGINE = NewEngine({ bounds: "guard" });
/** A memory that can grow, so that hosts reserve more than they make accessible. */
const TEXT = `(module (memory (export "m") 1 100)
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "store") (param i32) (i32.store (local.get 0) (i32.const 7))))`;
/** Beyond one page of memory: the next byte, the end of the maximum, behind it, and at the end of the address range. */
const BEYOND = [65_533, 65_536, 6_553_600, 1 << 30, -4];

interface Exports {
  load(at: number): number;
  store(at: number): void;
}

function binaryOf(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(encodeModule(ENGINE.parse(text)));
}

function trapsOf({ load, store }: Exports): string[] {
  const traps = (action: () => unknown): string => {
    try {
      return String(action());
    } catch {
      return "trap";
    }
  };
  return BEYOND.flatMap((at) => [traps(() => load(at)), traps(() => store(at))]);
}

Deno.test("accesses beyond a memory of the host's WebAssembly trap after the engine's code has run", () => {
  const ours = ENGINE.compile(TEXT).instantiate().exports as unknown as Exports;
  const module = new WebAssembly.Module(binaryOf(TEXT));
  const theirs = () => new WebAssembly.Instance(module).exports as unknown as Exports;
  const first = theirs();
  const all = BEYOND.flatMap(() => ["trap", "trap"]);
  for (const exports of [ours, first, theirs(), ours, first]) assert.deepEqual(trapsOf(exports), all);
});
