/**
 * Creates many live instances, each with a memory and data, and calls all of them: `deno task many [COUNT] [BOUNDS]`
 * (50,000 and `auto` by default). Run it under `ulimit -v` to see that address space is not a limit: with `auto` the
 * engine then falls back to explicit bounds checks. docs/control.md lists the JavaScript runtimes' own requirements.
 * Out: one line of figures.
 */
import { readFileSync } from "node:fs";
import { type Instance, NewEngine } from "@waft/engine";
import { oneOf, readTaskLine, wholeNumber } from "../task_options.ts";

const task = {
  name: "task many",
  about: "Creates many live instances, 50,000 by default, and calls all of them. BOUNDS is auto, guard or explicit.",
  operands: "[COUNT] [BOUNDS]",
  options: {},
} as const;
const { operands } = readTaskLine(task);
const count = wholeNumber(task, "COUNT", operands[0] ?? "50000", 1);
const bounds = oneOf(task, "BOUNDS", operands[1] ?? "auto", ["auto", "guard", "explicit"]);
const module = NewEngine({ bounds }).compile(`(module
  (memory (export "memory") 1 4) (table 4 funcref) (global $g (mut i32) (i32.const 7))
  (elem (i32.const 0) $f $f) (data (i32.const 8) "some bytes of data")
  (func $f (export "f") (param i32) (result i32)
    (i32.store (i32.const 1000) (i32.add (i32.load (i32.const 1000)) (local.get 0)))
    (i32.add (i32.load8_u (i32.const 8)) (i32.load (i32.const 1000)))))`);
const start = performance.now();
const instances: Instance[] = [];
for (let i = 0; i < count; i++) instances.push(module.instantiate());
const made = performance.now();
for (let round = 0; round < 2; round++) {
  instances.forEach((instance, i) => {
    const answer = instance.call({}, "f", i);
    if (answer !== "s".charCodeAt(0) + i * (round + 1)) throw new Error(`Instance ${i} returned ${answer}`);
  });
}
const status = (name: string) =>
  Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))?.[1]);
const mappings = readFileSync("/proc/self/maps", "utf8").split("\n").length - 1;
console.log(
  `${count} instances, ${((made - start) * 1000 / count).toFixed(1)} µs each, ` +
    `${Math.round(status("VmRSS") / 1024)} MiB resident, ${
      (status("VmSize") / 2 ** 20).toFixed(1)
    } GiB of address space, ${mappings} mappings`,
);
