/**
 * Lifting and lowering compared with the specification's definitions.py: each lifts the values that the other has
 * lowered. In: a layer of the canonical ABI and seeds. Out: the number of compared lists of values by string encoding;
 * throws at the first difference.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { GuestMemory } from "../../component/abi/guest_memory.ts";
import { type AbiLayer, GENERATED } from "../../component/abi/generated.ts";
import { INTERPRETED } from "../../component/abi/interpreted.ts";
import { flattenAll, type PointerType } from "../../component/abi/layout.ts";
import type { StringEncoding } from "../../component/model/canon.ts";
import type { ValType } from "../../component/model/types.ts";
import { suiteFolder, suiteHint, suiteNamed } from "../support/suites.ts";
import { randomSource, randomType, randomValue, type Sample } from "./random_values.ts";

const ENCODINGS: readonly StringEncoding[] = ["utf8", "utf16", "latin1+utf16"];
const SUITE = suiteNamed("components");
/** The folder of definitions.py: in a checkout of the repository, or beside the scripts. */
const definitions = ["design/mvp/canonical-abi", "spec/canonical-abi"]
  .map((path) => join(suiteFolder(SUITE), path))
  .find((path) => existsSync(path));
const hasPython = spawnSync("python3", ["--version"]).status === 0;
/** Whether the oracle can be asked; otherwise {@linkcode WHY_NOT} is the reason. */
export const HAS_ORACLE: boolean = definitions !== undefined && hasPython;
export const WHY_NOT: string = definitions === undefined ? suiteHint(SUITE) : "python3 is not installed";

interface Heap {
  memory: GuestMemory;
  bytes: Uint8Array;
  used(): number;
}

/** A memory whose allocations follow each other, as that of the oracle. */
function heap(pointer: PointerType): Heap {
  const buffer = new ArrayBuffer(1 << 16);
  const bytes = new Uint8Array(buffer);
  let last = 8;
  const memory = new GuestMemory({ buffer }, pointer, (old, oldBytes, align, count) => {
    if (count <= oldBytes) return old;
    const at = Math.ceil(last / align) * align;
    last = at + count;
    bytes.copyWithin(at, old, old + oldBytes);
    return at;
  });
  memory.refresh();
  return { memory, bytes, used: () => last };
}

interface Subject {
  types: ValType[];
  samples: Sample[];
  encoding: StringEncoding;
  pointer: PointerType;
}

function subject(seed: number): Subject {
  const random = randomSource(seed);
  const types = Array.from({ length: 1 + random(3) }, () => randomType(random, 3));
  return {
    types,
    samples: types.map((type) => randomValue(random, type)),
    encoding: ENCODINGS[random(3)],
    pointer: random(3) === 0 ? "i64" : "i32",
  };
}

function environment({ encoding }: Subject, memory: GuestMemory) {
  return { memory, encoding, handles: [], foreign: false };
}

/** A value in the notation of the oracle. */
function coreText(kind: string, value: number | bigint): string {
  if (kind === "i64") return String(BigInt.asUintN(64, value as bigint));
  if (kind === "i32") return String((value as number) >>> 0);
  if (Number.isNaN(value)) return "nan";
  return Object.is(value, -0) ? "-0.0" : String(value);
}

function lowered(layer: AbiLayer, of: Subject) {
  const { types, samples, encoding, pointer } = of;
  const { memory, bytes, used } = heap(pointer);
  const flat = layer.lowerer(types, pointer, 16).bind(environment(of, memory))(samples.map(({ js }) => js));
  const kinds = flattenAll(types, pointer, 16) ?? [pointer];
  const texts = flat.map((value, k) => [kinds[k], coreText(kinds[k], value)]);
  return { types, encoding, pointer, memory: hex(bytes.subarray(0, used())), flat: texts };
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function lift(layer: AbiLayer, of: Subject, answer: { flat: [string, string][]; memory: string }): unknown[] {
  const { memory, bytes } = heap(of.pointer);
  bytes.set(Uint8Array.from(answer.memory.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
  const flat = answer.flat.map(([kind, value]) => {
    if (kind === "i64") return BigInt.asIntN(64, BigInt(value));
    return kind === "i32" ? Number(value) | 0 : Number(value);
  });
  return layer.lifter(of.types, of.pointer, 16).bind(environment(of, memory))(flat);
}

/** Typed arrays as arrays, and no distinction between an absent and an undefined payload. */
function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return new Map([...value].map(([k, v]) => [plain(k), plain(v)]));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key, v]) => key !== "val" || v !== undefined).map(([k, v]) => [k, plain(v)]),
  );
}

/** Sends requests to the oracle and yields its answers in order. */
async function ask(requests: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const script = fileURLToPath(new URL("definitions_oracle.py", import.meta.url));
  const child = spawn("python3", ["-B", script, definitions!], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const answers: Record<string, unknown>[] = [];
  child.stdin.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
  for await (const line of createInterface({ input: child.stdout })) answers.push(JSON.parse(line));
  return answers;
}

/** The layers that lift and lower. */
export const LAYERS: readonly (readonly [name: string, layer: AbiLayer])[] = [
  ["generated code", GENERATED],
  ["a closure per type", INTERPRETED],
];

/** The number of compared lists of values. */
type Counts = Readonly<Record<StringEncoding, number>>;

function subjects(first: number, count: number): Subject[] {
  return Array.from({ length: count }, (_, k) => subject(first + k));
}

function counts(of: readonly Subject[]): Counts {
  const sums = { "utf8": 0, "utf16": 0, "latin1+utf16": 0 };
  for (const { encoding } of of) sums[encoding]++;
  return sums;
}

/** Lowers values by `layer`, lifts them by definitions.py, and compares. */
export async function compareLowering(layer: AbiLayer, first: number, count: number): Promise<Counts> {
  const all = subjects(first, count);
  const answers = await ask(all.map((of) => lowered(layer, of)));
  assert.equal(answers.length, count);
  all.forEach((of, k) => {
    assert.deepEqual(answers[k]["values"], of.samples.map(({ oracle }) => oracle), `seed ${first + k}`);
  });
  return counts(all);
}

/** Compares what `layer` lifts of values that definitions.py has lowered. */
export async function compareLifting(layer: AbiLayer, first: number, count: number): Promise<Counts> {
  const all = subjects(first, count);
  const answers = await ask(
    all.map(({ types, encoding, pointer, samples }) => {
      return { types, encoding, pointer, values: samples.map(({ oracle }) => oracle) };
    }),
  );
  assert.equal(answers.length, count);
  all.forEach((of, k) => {
    const values = lift(layer, of, answers[k] as unknown as { flat: [string, string][]; memory: string });
    assert.deepEqual(plain(values), plain(of.samples.map(({ js }) => js)), `seed ${first + k}`);
  });
  return counts(all);
}
