/**
 * A program for artifact_test.ts. In: the folder of a cache, a number of core modules, and the bytes of a data segment
 * in each. Out: a line with the tiers of the compilations of a component of such modules, each with its number.
 */
import process from "node:process";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";

const [directory, count, bytes] = process.argv.slice(2);
const tiers = new Map<string, number>();
const explain = ({ tier, origin }: { tier: string; origin: string }) => {
  const kind = `${tier} ${origin}`;
  tiers.set(kind, (tiers.get(kind) ?? 0) + 1);
};
const engine = NewEngine({ cache: { directory }, explain });
const module = (k: number) =>
  `(core module $m${k} (memory 2) (data (i32.const 0) "${"x".repeat(Number(bytes))}")
    (func (export "f") (result i32) (i32.const ${k}))) (core instance $i${k} (instantiate $m${k}))`;
const component = compileComponent(
  engine,
  `(component ${Array.from({ length: Number(count) }, (_, k) => module(k)).join("\n")}
    (func (export "f") (result u32) (canon lift (core func $i1 "f"))))`,
);
if (component.instantiate<{ f(): number }>().exports.f() !== 1) throw new Error("wrong result");
console.log([...tiers].map(([kind, times]) => `${times} ${kind}`).join(", "));
process.exit(0);
