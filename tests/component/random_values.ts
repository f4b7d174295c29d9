/**
 * Random types and values. In: a seed. Out: types, values in JavaScript's form, and values in the notation of
 * definitions_oracle.py, in which numbers are decimal text, floats their bits, and variants objects with one field.
 */
import type { ValType } from "../../component/model/types.ts";

/** A pseudo-random number generator (mulberry32). */
export function randomSource(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

type Random = (below: number) => number;

const LEAVES = "bool s8 u8 s16 u16 s32 u32 s64 u64 f32 f64 char string".split(" ");
const KEYS = "bool u8 s16 u32 s64 char string".split(" ");

function labels(random: Random, most: number): string[] {
  return Array.from({ length: 1 + random(most) }, (_, k) => `l-${"abcdefghijklmnopqrstuvwxyz"[k % 26]}${k}`);
}

function leaf(random: Random): ValType {
  return { kind: LEAVES[random(LEAVES.length)] } as ValType;
}

/** A type of at most `depth` levels. */
export function randomType(random: Random, depth: number): ValType {
  if (depth === 0 || random(3) === 0) return leaf(random);
  const part = () => randomType(random, depth - 1);
  const maybe = () => random(3) === 0 ? undefined : part();
  switch (random(10)) {
    case 0:
      return { kind: "list", element: part() };
    case 1:
      return { kind: "list", element: part(), length: 1 + random(3) };
    case 2:
      return { kind: "record", fields: labels(random, 4).map((name) => ({ name, type: part() })) };
    case 3:
      return { kind: "tuple", types: Array.from({ length: 1 + random(3) }, part) };
    case 4:
      return {
        kind: "variant",
        cases: labels(random, random(8) === 0 ? 300 : 4).map((name, k) => {
          const type = k > 6 ? undefined : maybe();
          return type === undefined ? { name } : { name, type };
        }),
      };
    case 5:
      return { kind: "enum", names: labels(random, random(4) === 0 ? 300 : 5) };
    case 6:
      return { kind: "option", type: part() };
    case 7: {
      const ok = maybe();
      const err = maybe();
      return { kind: "result", ...(ok === undefined ? {} : { ok }), ...(err === undefined ? {} : { err }) };
    }
    case 8:
      return { kind: "flags", names: labels(random, 32) };
    default:
      return { kind: "map", key: { kind: KEYS[random(KEYS.length)] } as ValType, value: part() };
  }
}

/** A value in both notations. */
export interface Sample {
  readonly js: unknown;
  readonly oracle: unknown;
}

const CHARACTERS = ["a", "Z", "é", "ÿ", "Ā", "☃", "ツ", "😀", "\u0000", "\uffff"];
const BITS = new DataView(new ArrayBuffer(8));

function integer(random: Random, bits: number, signed: boolean): bigint {
  const special = [0n, 1n, -1n, 2n ** BigInt(bits - 1), 2n ** BigInt(bits - 1) - 1n];
  const raw = random(2) === 0
    ? special[random(special.length)]
    : BigInt(random(2 ** 32)) * 2n ** 32n + BigInt(random(2 ** 32));
  return signed ? BigInt.asIntN(bits, raw) : BigInt.asUintN(bits, raw);
}

function text(random: Random): string {
  const plain = random(2) === 0;
  return Array.from({ length: random(40) }, () => CHARACTERS[random(plain ? 4 : CHARACTERS.length)]).join("");
}

function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A value of `type`. */
export function randomValue(random: Random, type: ValType): Sample {
  const all = (types: readonly ValType[]) => types.map((part) => randomValue(random, part));
  switch (type.kind) {
    case "bool": {
      const value = random(2) === 1;
      return { js: value, oracle: value };
    }
    case "char": {
      const value = CHARACTERS[random(CHARACTERS.length)];
      return { js: value, oracle: value };
    }
    case "string": {
      const value = text(random);
      return { js: value, oracle: value };
    }
    case "f32": {
      BITS.setUint32(0, Number(integer(random, 32, false)));
      const value = BITS.getFloat32(0);
      return { js: value, oracle: Number.isNaN(value) ? "nan" : String(BITS.getUint32(0)) };
    }
    case "f64": {
      BITS.setBigUint64(0, integer(random, 64, false));
      const value = BITS.getFloat64(0);
      return { js: value, oracle: Number.isNaN(value) ? "nan" : String(BITS.getBigUint64(0)) };
    }
    case "list": {
      const items = all(Array.from({ length: type.length ?? random(5) }, () => type.element));
      return { js: items.map(({ js }) => js), oracle: items.map(({ oracle }) => oracle) };
    }
    case "map": {
      const key = randomValue(random, type.key);
      const value = randomValue(random, type.value);
      return { js: new Map([[key.js, value.js]]), oracle: [{ 0: key.oracle, 1: value.oracle }] };
    }
    case "record": {
      const parts = all(type.fields.map((field) => field.type));
      return {
        js: Object.fromEntries(type.fields.map((field, k) => [camel(field.name), parts[k].js])),
        oracle: Object.fromEntries(type.fields.map((field, k) => [field.name, parts[k].oracle])),
      };
    }
    case "tuple": {
      const parts = all(type.types);
      return { js: parts.map(({ js }) => js), oracle: Object.fromEntries(parts.map(({ oracle }, k) => [k, oracle])) };
    }
    case "variant": {
      const { name, type: of } = type.cases[random(type.cases.length)];
      const payload = of === undefined ? undefined : randomValue(random, of);
      return {
        js: payload === undefined ? { tag: name } : { tag: name, val: payload.js },
        oracle: { [name]: payload?.oracle ?? null },
      };
    }
    case "enum": {
      const name = type.names[random(type.names.length)];
      return { js: name, oracle: { [name]: null } };
    }
    case "option": {
      const some = random(2) === 0 ? undefined : randomValue(random, type.type);
      const tagged = type.type.kind === "option";
      const oracle = some === undefined ? { none: null } : { some: some.oracle };
      if (!tagged) return { js: some?.js, oracle };
      return { js: some === undefined ? { tag: "none" } : { tag: "some", val: some.js }, oracle };
    }
    case "result": {
      const isOk = random(2) === 0;
      const of = isOk ? type.ok : type.err;
      const payload = of === undefined ? undefined : randomValue(random, of);
      return {
        js: { tag: isOk ? "ok" : "err", val: payload?.js },
        oracle: { [isOk ? "ok" : "error"]: payload?.oracle ?? null },
      };
    }
    case "flags": {
      const set = type.names.map((name) => [name, random(2) === 1] as const);
      return {
        js: Object.fromEntries(set.map(([name, value]) => [camel(name), value])),
        oracle: Object.fromEntries(set),
      };
    }
    default: {
      const bits = Number(type.kind.slice(1));
      const value = integer(random, bits, type.kind.startsWith("s"));
      return { js: bits === 64 ? value : Number(value), oracle: String(value) };
    }
  }
}
