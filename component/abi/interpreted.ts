/**
 * Lifting and lowering without code from text, for hosts that forbid it. In: the same types as the generated layer.
 * Out: the same functions, composed of one closure per type. Invariant: for every type and value the effects are those
 * of the generated code.
 */
import { LIST_ARRAYS } from "./list_arrays.ts";
import { Delivery } from "@waft/engine";
import type { FuncType, ValType } from "../model/types.ts";
import type {
  AbiLayer,
  CoreValue,
  ElementCodec,
  ExportHooks,
  ImportHooks,
  Lifter,
  Lowerer,
  Template,
} from "./generated.ts";
import { CHARGED_COST, ELEMENTS_PER_CHECK } from "./guest_memory.ts";
import {
  addressOf,
  casesOf,
  type CoreType,
  discriminantBytes,
  fieldOffsets,
  flagsBytes,
  flatten,
  flattenAll,
  layoutOf,
  liftCost,
  MAX_FLAT_PARAMS,
  MAX_FLAT_RESULTS,
  paramTypes,
  payloadOffset,
  pointerBytes,
  type PointerType,
  resultTypes,
  tupleLayout,
} from "./layout.ts";
import { camelCase } from "./names.ts";
import { type AbiEnv, runtimeOf } from "./runtime.ts";
import { unitsStored } from "./strings.ts";

/** Access to the values of one type. */
interface Access {
  load(at: number): unknown;
  store(value: unknown, at: number): void;
  /** Lifts from flat values, of which `next` yields one. */
  lift(next: () => CoreValue): unknown;
  /** Lowers to flat values. */
  lower(value: unknown, out: CoreValue[]): void;
}

type Words = Readonly<
  Record<string, (view: DataView) => readonly [(at: number) => unknown, (at: number, v: never) => void]>
>;

const WORDS: Words = {
  bool: (d) => [(at) => d.getUint8(at) !== 0, (at, v) => d.setUint8(at, v ? 1 : 0)],
  s8: (d) => [(at) => d.getInt8(at), (at, v) => d.setInt8(at, v)],
  u8: (d) => [(at) => d.getUint8(at), (at, v) => d.setUint8(at, v)],
  s16: (d) => [(at) => d.getInt16(at, true), (at, v) => d.setInt16(at, v, true)],
  u16: (d) => [(at) => d.getUint16(at, true), (at, v) => d.setUint16(at, v, true)],
  s32: (d) => [(at) => d.getInt32(at, true), (at, v) => d.setInt32(at, v, true)],
  u32: (d) => [(at) => d.getUint32(at, true), (at, v) => d.setUint32(at, v, true)],
  s64: (d) => [(at) => d.getBigInt64(at, true), (at, v) => d.setBigInt64(at, BigInt(v), true)],
  u64: (d) => [(at) => d.getBigUint64(at, true), (at, v) => d.setBigUint64(at, BigInt(v), true)],
  f32: (d) => [(at) => d.getFloat32(at, true), (at, v) => d.setFloat32(at, v, true)],
  f64: (d) => [(at) => d.getFloat64(at, true), (at, v) => d.setFloat64(at, v, true)],
};

const FLAT: Readonly<Record<string, readonly [(x: never) => unknown, (v: never) => CoreValue]>> = {
  bool: [(x) => x !== 0, (v) => v ? 1 : 0],
  s8: [(x) => x << 24 >> 24, (v) => v << 24 >> 24],
  u8: [(x) => x & 255, (v) => v & 255],
  s16: [(x) => x << 16 >> 16, (v) => v << 16 >> 16],
  u16: [(x) => x & 65535, (v) => v & 65535],
  s32: [(x) => x, (v) => v | 0],
  u32: [(x) => x >>> 0, (v) => v | 0],
  s64: [(x) => x, (v) => BigInt.asIntN(64, BigInt(v))],
  u64: [(x) => BigInt.asUintN(64, x), (v) => BigInt.asIntN(64, BigInt(v))],
  f32: [(x) => x, (v) => Math.fround(v)],
  f64: [(x) => x, (v) => +v],
};

type Fields = readonly (readonly [key: string | number, access: Access, offset: number])[];

/** Makes accesses for one environment. */
class Accesses {
  readonly #env: AbiEnv;
  readonly #r: ReturnType<typeof runtimeOf>;
  readonly #pointer: PointerType;
  readonly #handles: readonly ValType[];
  readonly #known = new Map<ValType, Access>();

  constructor(env: AbiEnv, pointer: PointerType, handles: readonly ValType[]) {
    this.#env = env;
    this.#r = runtimeOf(env);
    this.#pointer = pointer;
    this.#handles = handles;
  }

  get env(): AbiEnv {
    return this.#env;
  }

  of(type: ValType): Access {
    let access = this.#known.get(type);
    if (access === undefined) this.#known.set(type, access = this.#make(type));
    return access;
  }

  #make(type: ValType): Access {
    if (WORDS[type.kind] !== undefined) return this.#word(type.kind);
    switch (type.kind) {
      case "char":
        return this.#coded((x) => this.#r.char(x), (v) => this.#r.codePoint(v), 4);
      case "string":
        return this.#range((p, n) => this.#r.text(p, n), (v) => [this.#r.storeText(v), unitsStored()], true);
      case "list":
        return type.length === undefined ? this.#list(type.element, (v) => v) : this.#fixed(type.element, type.length);
      case "map":
        return this.#list({ kind: "tuple", types: [type.key, type.value] }, (v) => this.#r.toMap(v as never));
      case "record":
        return this.#record(type.fields.map((f) => camelCase(f.name)), type.fields.map((f) => f.type), false);
      case "tuple":
        return this.#record(type.types.map((_, k) => k), type.types, true);
      case "flags":
        return this.#flags(type.names.map(camelCase));
      case "enum":
        return this.#enumeration(type.names);
      case "variant":
      case "option":
      case "result":
        return this.#variant(type);
      default: {
        const codec = this.#env.handles[this.#handles.indexOf(type)];
        return this.#coded((x) => codec.lift(x), (v) => codec.lower(v), 4);
      }
    }
  }

  #word(kind: string): Access {
    const { memory } = this.#env;
    const word = (): ReturnType<Words[string]> => WORDS[kind](memory.view);
    const [lift, lower] = FLAT[kind];
    return {
      load: (at) => word()[0](at),
      store: (v, at) => word()[1](at, v as never),
      lift: (next) => lift(next() as never),
      lower: (v, out) => void out.push(lower(v as never)),
    };
  }

  /** A type that is an unsigned integer of `bytes` bytes. */
  #coded(lift: (x: number) => unknown, lower: (v: unknown) => number, bytes: number): Access {
    return {
      load: (at) => lift(this.#unsigned(bytes, at)),
      store: (v, at) => {
        const x = lower(v);
        this.#setUnsigned(bytes, at, x);
      },
      lift: (next) => lift((next() as number) >>> 0),
      lower: (v, out) => void out.push(lower(v)),
    };
  }

  #unsigned(bytes: number, at: number): number {
    const { view } = this.#env.memory;
    return bytes === 1 ? view.getUint8(at) : bytes === 2 ? view.getUint16(at, true) : view.getUint32(at, true);
  }

  #setUnsigned(bytes: number, at: number, x: number): void {
    const { view } = this.#env.memory;
    if (bytes === 1) view.setUint8(at, x);
    else if (bytes === 2) view.setUint16(at, x, true);
    else view.setUint32(at, x, true);
  }

  pointerIn(flat: CoreValue): number {
    return typeof flat === "number" ? flat >>> 0 : addressOf(flat);
  }

  pointerOut(pointer: number): CoreValue {
    return this.#pointer === "i32" ? pointer : BigInt(pointer);
  }

  #flatWord(at: number): CoreValue {
    const { view } = this.#env.memory;
    return this.#pointer === "i32" ? view.getUint32(at, true) : view.getBigUint64(at, true);
  }

  #setWord(at: number, value: CoreValue): void {
    const { view } = this.#env.memory;
    if (typeof value === "number") view.setUint32(at, value, true);
    else view.setBigUint64(at, value, true);
  }

  /** A pointer and a number of elements, or of code units. */
  #range(
    load: (pointer: number, count: number) => unknown,
    store: (value: unknown) => [pointer: number, count: number],
    isText: boolean,
  ): Access {
    const bytes = pointerBytes(this.#pointer);
    const count = (flat: CoreValue): number => {
      if (!isText) return this.pointerIn(flat);
      return typeof flat === "number" ? this.#r.units32(flat >>> 0) : this.#r.units64(BigInt.asUintN(64, flat));
    };
    const words = (value: unknown): [CoreValue, CoreValue] => {
      const [pointer, n] = store(value);
      if (!isText) return [this.pointerOut(pointer), this.pointerOut(n)];
      return [this.pointerOut(pointer), this.#pointer === "i32" ? this.#r.tag32() : this.#r.tag64()];
    };
    return {
      load: (at) => load(this.pointerIn(this.#flatWord(at)), count(this.#flatWord(at + bytes))),
      store: (value, at) => words(value).forEach((word, k) => this.#setWord(at + k * bytes, word)),
      lift: (next) => load(this.pointerIn(next()), count(next())),
      lower: (value, out) => void out.push(...words(value)),
    };
  }

  loadElements(element: ValType, pointer: number, count: number): ArrayLike<unknown> {
    const access = this.of(element);
    const { size } = layoutOf(element, this.#pointer);
    const cost = liftCost(element);
    const { memory } = this.#env;
    const TypedArray = LIST_ARRAYS[element.kind];
    if (TypedArray !== undefined) return new TypedArray(memory.copy(pointer, count * size).buffer);
    return Array.from({ length: count }, (_, k) => {
      if (k % ELEMENTS_PER_CHECK === 0) memory.spend(Math.min(count - k, ELEMENTS_PER_CHECK) * cost);
      return access.load(pointer + k * size);
    });
  }

  storeElements(element: ValType, values: ArrayLike<unknown>, pointer: number): void {
    const access = this.of(element);
    const { size } = layoutOf(element, this.#pointer);
    const { memory } = this.#env;
    const cost = liftCost(element);
    const count = values.length;
    for (let k = 0; k < count; k++) {
      if (k % ELEMENTS_PER_CHECK === 0) memory.checkTime(Math.min(count - k, ELEMENTS_PER_CHECK) * cost);
      access.store(values[k], pointer + k * size);
    }
  }

  #list(element: ValType, finish: (items: unknown) => unknown): Access {
    const { memory } = this.#env;
    const { size, align } = layoutOf(element, this.#pointer);
    const cost = liftCost(element);
    const load = (pointer: number, count: number) => {
      memory.refresh();
      this.#r.checkList(pointer, count, size, align, cost);
      return finish(this.loadElements(element, pointer, count));
    };
    const store = (value: unknown): [number, number] => {
      const items = this.#r.listOf(value);
      this.#r.checkBytes(items.length * size);
      const pointer = memory.allocate(align, items.length * size);
      this.storeElements(element, items, pointer);
      return [pointer, items.length];
    };
    return this.#range(load, store, false);
  }

  #fixed(element: ValType, count: number): Access {
    const items = this.#record(Array.from({ length: count }, (_, k) => k), Array(count).fill(element), true);
    const typed = (value: unknown) => LIST_ARRAYS[element.kind]?.from(value as never) ?? value;
    const checked = (value: unknown) => {
      this.#r.checkCount(value as ArrayLike<unknown>, count);
      return value;
    };
    return {
      load: (at) => typed(items.load(at)),
      store: (value, at) => items.store(checked(value), at),
      lift: (next) => typed(items.lift(next)),
      lower: (value, out) => items.lower(checked(value), out),
    };
  }

  #record(keys: readonly (string | number)[], types: readonly ValType[], isTuple: boolean): Access {
    const offsets = fieldOffsets(types, this.#pointer);
    const fields: Fields = keys.map((key, k) => [key, this.of(types[k]), offsets[k]]);
    const collect = (part: (field: Fields[number]) => unknown) =>
      isTuple ? fields.map(part) : Object.fromEntries(fields.map((field) => [field[0], part(field)]));
    const field = (value: unknown, key: string | number) => (value as Record<string | number, unknown>)[key];
    return {
      load: (at) => collect(([, access, offset]) => access.load(at + offset)),
      store: (value, at) => fields.forEach(([key, access, offset]) => access.store(field(value, key), at + offset)),
      lift: (next) => collect(([, access]) => access.lift(next)),
      lower: (value, out) => fields.forEach(([key, access]) => access.lower(field(value, key), out)),
    };
  }

  #flags(names: readonly string[]): Access {
    const lift = (bits: number) => Object.fromEntries(names.map((name, k) => [name, ((bits >>> k) & 1) !== 0]));
    const lower = (value: unknown) => {
      const set = (value ?? {}) as Record<string, unknown>;
      return names.reduce((bits, name, k) => bits | (set[name] ? 1 << k : 0), 0);
    };
    return this.#coded(lift, lower, flagsBytes(names.length));
  }

  #enumeration(names: readonly string[]): Access {
    const indices = indicesOf(names);
    const lower = (value: unknown) => indices.get(value) ?? this.#r.badTag(value, names);
    return this.#coded((k) => names[k] ?? this.#r.badCase(), lower, discriminantBytes(names.length));
  }

  #variant(type: Extract<ValType, { kind: "variant" | "option" | "result" }>): Access {
    const cases = casesOf(type);
    const payload = payloadOffset(cases, this.#pointer);
    const bytes = discriminantBytes(cases.length);
    const plain = type.kind === "option" && type.type.kind !== "option";
    const tags = cases.map(({ name }) => type.kind === "result" && name === "error" ? "err" : name);
    const indices = indicesOf(tags);
    const accesses = cases.map((c) => c.type === undefined ? undefined : this.of(c.type));
    const joined = (flatten(type, this.#pointer) ?? []).slice(1);
    const value = (k: number, val: unknown) => {
      if (plain) return val;
      return accesses[k] === undefined && type.kind !== "result" ? { tag: tags[k] } : { tag: tags[k], val };
    };
    /** The index of the case of a value, and its payload. */
    const choose = (v: unknown): [number, unknown] => {
      if (plain) return v === undefined || v === null ? [0, undefined] : [1, v];
      const { tag, val } = v as { tag: string; val?: unknown };
      return [indices.get(tag) ?? this.#r.badTag(tag, tags), val];
    };
    const check = (k: number) => k < cases.length ? k : this.#r.badCase();
    return {
      load: (at) => {
        const k = check(this.#unsigned(bytes, at));
        return value(k, accesses[k]?.load(at + payload));
      },
      store: (v, at) => {
        const [k, val] = choose(v);
        this.#setUnsigned(bytes, at, k);
        accesses[k]?.store(val, at + payload);
      },
      lift: (next) => {
        const k = check((next() as number) >>> 0);
        const flat = joined.map(() => next());
        const of = cases[k].type;
        const wanted = of === undefined ? [] : flatten(of, this.#pointer)!;
        let at = 0;
        return value(k, accesses[k]?.lift(() => this.#coerceIn(joined[at], wanted[at], flat[at++])));
      },
      lower: (v, out) => {
        const [k, val] = choose(v);
        const flat: CoreValue[] = [];
        accesses[k]?.lower(val, flat);
        const of = cases[k].type;
        const have = of === undefined ? [] : flatten(of, this.#pointer)!;
        out.push(k, ...joined.map((to, j) => j < flat.length ? this.#coerceOut(to, have[j], flat[j]) : zero(to)));
      },
    };
  }

  #coerceIn(have: CoreType, want: CoreType, x: CoreValue): CoreValue {
    if (have === want) return x;
    if (want === "f64") return this.#r.bitsToF64(x as bigint);
    const word = have === "i64" ? Number(BigInt.asIntN(32, x as bigint)) : x as number;
    return want === "f32" ? this.#r.bitsToF32(word) : word;
  }

  #coerceOut(want: CoreType, have: CoreType, x: CoreValue): CoreValue {
    if (have === want) return x;
    if (have === "f64") return this.#r.f64ToBits(x as number);
    const word = have === "f32" ? this.#r.f32ToBits(x as number) : x as number;
    return want === "i64" ? BigInt.asUintN(32, BigInt(word)) : word;
  }
}

function indicesOf(names: readonly string[]): ReadonlyMap<unknown, number> {
  return new Map(names.map((name, k) => [name, k]));
}

function zero(type: CoreType): CoreValue {
  return type === "i64" ? 0n : 0;
}

/** The handle types within `types`, each node once. */
function handlesIn(types: readonly ValType[], found: ValType[] = [], seen: Set<ValType> = new Set()): ValType[] {
  for (const type of types) {
    if (seen.has(type)) continue;
    seen.add(type);
    if (["own", "borrow", "stream", "future", "error-context"].includes(type.kind)) found.push(type);
    else handlesIn(operands(type), found, seen);
  }
  return found;
}

function operands(type: ValType): readonly ValType[] {
  switch (type.kind) {
    case "list":
      return [type.element];
    case "map":
      return [type.key, type.value];
    case "record":
      return type.fields.map((field) => field.type);
    case "tuple":
      return type.types;
    case "variant":
    case "option":
    case "result":
      return casesOf(type).flatMap((c) => c.type === undefined ? [] : [c.type]);
    default:
      return [];
  }
}

function liftAll(accesses: Accesses, types: readonly ValType[], pointer: PointerType, most: number): Lifter {
  const { memory } = accesses.env;
  if (flattenAll(types, pointer, most) !== undefined) {
    return (flat) => {
      memory.beginLift();
      let k = 0;
      return types.map((type) => accesses.of(type).lift(() => flat[k++]));
    };
  }
  const { size, align } = tupleLayout(types, pointer);
  const cost = types.reduce((sum, type) => sum + liftCost(type), 0);
  const offsets = fieldOffsets(types, pointer);
  return ([flat]) => {
    const at = accesses.pointerIn(flat);
    memory.beginLift();
    memory.refresh();
    memory.check(at, align, size, "pointer to values");
    if (cost >= CHARGED_COST) {
      memory.charge(cost);
      memory.spend(cost);
    }
    return types.map((type, k) => accesses.of(type).load(at + offsets[k]));
  };
}

function lowerAll(accesses: Accesses, types: readonly ValType[], pointer: PointerType, most: number): Lowerer {
  const { memory } = accesses.env;
  if (flattenAll(types, pointer, most) !== undefined) {
    return (values) => {
      const flat: CoreValue[] = [];
      memory.refresh();
      types.forEach((type, k) => accesses.of(type).lower(values[k], flat));
      return flat;
    };
  }
  const { size, align } = tupleLayout(types, pointer);
  const offsets = fieldOffsets(types, pointer);
  return (values, out) => {
    memory.refresh();
    const at = out === undefined ? memory.allocate(align, size) : accesses.pointerIn(out);
    memory.check(at, align, size, "pointer to results");
    types.forEach((type, k) => accesses.of(type).store(values[k], at + offsets[k]));
    return out === undefined ? [accesses.pointerOut(at)] : [];
  };
}

function template<T>(types: readonly ValType[], pointer: PointerType, make: (accesses: Accesses) => T): Template<T> {
  const handles = handlesIn(types);
  return { handles, bind: (env) => make(new Accesses(env, pointer, handles)) };
}

function exported(type: FuncType, pointer: PointerType) {
  const results = resultTypes(type);
  const params = paramTypes(type);
  return template([...params, ...results], pointer, (accesses) => {
    const lower = lowerAll(accesses, params, pointer, MAX_FLAT_PARAMS);
    const lift = liftAll(accesses, results, pointer, MAX_FLAT_RESULTS);
    return (hooks: ExportHooks) => (...args: unknown[]): unknown => {
      const call = hooks.enter();
      let called = false;
      try {
        const flat = lower(args);
        called = true;
        hooks.lowered?.();
        const result = hooks.core(...flat);
        const flatResults = result === undefined ? [] : [result as CoreValue];
        const [value] = lift(flatResults);
        hooks.resolved(call);
        hooks.postReturn?.(...flatResults);
        hooks.leave(call);
        return value;
      } catch (error) {
        throw hooks.failed(error, call, called);
      }
    };
  });
}

function imported(type: FuncType, pointer: PointerType) {
  const results = resultTypes(type);
  const params = paramTypes(type);
  const count = flattenAll(params, pointer, MAX_FLAT_PARAMS)?.length ?? 1;
  return template([...params, ...results], pointer, (accesses) => {
    const lift = liftAll(accesses, params, pointer, MAX_FLAT_PARAMS);
    const lower = lowerAll(accesses, results, pointer, MAX_FLAT_RESULTS);
    return (hooks: ImportHooks) => (...flat: CoreValue[]): unknown => {
      const call = hooks.enter();
      const finish = (value: unknown) => {
        const lowered = lower(results.length === 0 ? [] : [value], flat[count]);
        hooks.leave(call);
        return lowered[0];
      };
      const value = hooks.call(...lift(flat));
      return value instanceof Promise ? new Delivery(value, finish) : finish(value);
    };
  });
}

/** Lifting and lowering by closures. */
export const INTERPRETED: AbiLayer = {
  lifter: (types, pointer, most) => template(types, pointer, (accesses) => liftAll(accesses, types, pointer, most)),
  lowerer: (types, pointer, most) => template(types, pointer, (accesses) => lowerAll(accesses, types, pointer, most)),
  elements: (type, pointer) =>
    template([type], pointer, (accesses): ElementCodec => ({
      load: (at, count) => {
        accesses.env.memory.beginLift();
        accesses.env.memory.charge(count * liftCost(type));
        accesses.env.memory.refresh();
        return accesses.loadElements(type, at, count);
      },
      store: (values, at) => {
        accesses.env.memory.refresh();
        accesses.storeElements(type, values, at);
      },
    })),
  exported,
  imported,
};
