/**
 * Measures the address space held by lent views, in a separate process because the figure covers the whole process:
 * creates, grows, views and closes memories in rounds. Out: one line of JSON with the GiB of address space `before` and
 * `after` the later rounds.
 */
import { readFileSync } from "node:fs";
import { NewEngine } from "@waft/engine";
import { settle } from "../support/collect_garbage.ts";

const module = NewEngine({ bounds: "guard" }).compile(`(module (memory (export "m") 1 20))`);

function use(count: number): void {
  for (let n = 0; n < count; n++) {
    const instance = module.instantiate();
    const memory = instance.exports["m"] as { readonly buffer: ArrayBuffer; grow(pages: number): unknown };
    new Uint8Array(memory.buffer)[1] = n;
    memory.grow(1);
    new Uint8Array(memory.buffer)[65536] = n;
    instance.close();
  }
}

const size = () => Number(/VmSize:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))![1]) / 2 ** 20;

use(40);
await settle();
const before = size();
for (let round = 0; round < 3; round++) {
  use(40);
  await settle();
}
console.log(JSON.stringify({ before, after: size() }));
