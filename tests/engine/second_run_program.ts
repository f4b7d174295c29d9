/**
 * A program for explain_test.ts. In: the folder of a cache, and the bytes by which a custom section enlarges the
 * module. Out: a line with the tiers of the compilations up to the first result, in order.
 */
import process from "node:process";
import { NewEngine } from "@waft/engine";

const [directory, padding] = process.argv.slice(2);

/** A custom section of `bytes` bytes behind its header. */
function customSection(bytes: number): Uint8Array {
  const size = [bytes & 127 | 128, bytes >> 7 & 127 | 128, bytes >> 14 & 127];
  return Uint8Array.from([0, ...size, ...new Uint8Array(bytes)]);
}

const tiers: string[] = [];
const engine = NewEngine({ cache: { directory }, explain: ({ tier, origin }) => tiers.push(`${tier} ${origin}`) });
const { bytes } = engine.parse(`(module (func (export "f") (result i32) (i32.const 42)))`);
const module = engine.compile(Uint8Array.from([...bytes, ...customSection(Number(padding))]));
if (module.instantiate().call({}, "f") !== 42) throw new Error("wrong result");
console.log(tiers.join(", "));
process.exit(0);
