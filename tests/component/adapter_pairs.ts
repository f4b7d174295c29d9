/**
 * Random calls from one component to another, through an adapter and through JavaScript. In: a seed, which decides the
 * type of the function, the canonical options of both sides, the values, and a fault: changed bytes or flat values, a
 * wrong `realloc`, a re-entrance, handles that are not dropped. Out: everything that the two components can observe of
 * the call. Invariant: the two ways have equal observations, in the same order.
 */
import { type Module, NewEngine } from "@waft/engine";
import type { CoreValue } from "../../component/abi/generated.ts";
import { GENERATED } from "../../component/abi/generated.ts";
import { GuestMemory } from "../../component/abi/guest_memory.ts";
import { liftShape, lowerShape, type PointerType, someType } from "../../component/abi/layout.ts";
import { ComponentInstance, FLAG, Store } from "../../component/async/component_instance.ts";
import type { CoreFunction } from "../../component/async/core_function.ts";
import { ResourceHandle, RuntimeResource } from "../../component/async/entries.ts";
import { runReady } from "../../component/async/task.ts";
import { fuse } from "../../component/link/adapter.ts";
import { dropResource } from "../../component/link/codecs.ts";
import { liftFunction } from "../../component/link/lift.ts";
import { lowerFunction } from "../../component/link/lower.ts";
import { RuntimeOptions } from "../../component/link/options.ts";
import type { StringEncoding } from "../../component/model/canon.ts";
import type { FuncType, HandleType, ResourceType, ValType } from "../../component/model/types.ts";
import { randomSource, randomType, randomValue } from "./random_values.ts";

type Random = (below: number) => number;

const ENCODINGS: readonly StringEncoding[] = ["utf8", "utf16", "latin1+utf16"];
const engine = NewEngine();
const MEMORIES = {
  i32: engine.compile(`(module (memory (export "memory") 1))`),
  i64: engine.compile(`(module (memory (export "memory") i64 1))`),
};

/** Values that a test passes are below this address, and allocations of `realloc` above. */
const HEAP = 0x8000;
/** Padding of the values, which must not reach the other side. */
const PADDING = 0xa5;

/** Faults of a call, by the number that the seed chooses. */
const FAULTS = [
  ...Array<"none">(8).fill("none"),
  "argument bytes",
  "argument bytes",
  "flat arguments",
  "result bytes",
  "result bytes",
  "flat result",
  "realloc of the callee",
  "realloc of the caller",
  "post-return",
  "re-entrance",
  "lasting borrows",
] as const;

const REALLOC_FAULTS = ["misaligned", "out of bounds", "trap", "forgetful", "calls an import"] as const;

/** One side of the call: an instance with a memory. */
class Side {
  readonly instance: ComponentInstance;
  readonly options: RuntimeOptions;
  readonly bytes: () => Uint8Array;
  /** The call of `realloc` that goes wrong, and how. */
  fault: { at: number; kind: (typeof REALLOC_FAULTS)[number]; reenter: () => void } | undefined;
  #next = HEAP;
  #values = 16;
  #calls = 0;

  constructor(name: string, root: ComponentInstance, random: Random, log: unknown[][], postReturn?: CoreFunction) {
    this.instance = new ComponentInstance(root.store, root);
    const pointer: PointerType = random(3) === 0 ? "i64" : "i32";
    const holder = MEMORIES[pointer].instantiate({});
    root.store.coreInstances.push(holder);
    const memory = holder.exports["memory"] as { buffer: ArrayBuffer };
    this.bytes = () => new Uint8Array(memory.buffer);
    this.bytes().fill(PADDING, 0, HEAP);
    const toNumber = (value: CoreValue) => typeof value === "bigint" ? Number(BigInt.asUintN(64, value)) : value >>> 0;
    this.options = new RuntimeOptions(this.instance, {
      encoding: ENCODINGS[random(3)],
      isAsync: false,
      memory,
      realloc: (...args) => {
        const [old, oldBytes, align, count] = args.map(toNumber);
        log.push([`${name} realloc`, old, oldBytes, align, count, this.instance.mayLeave]);
        const at = this.#realloc(old, oldBytes, align, count);
        return pointer === "i64" ? BigInt(at) : at | 0;
      },
      postReturn,
      callback: undefined,
    });
  }

  #realloc(old: number, oldBytes: number, align: number, count: number): number {
    const kind = this.#calls++ === this.fault?.at ? this.fault.kind : undefined;
    if (kind === "trap") throw new RangeError("realloc fails");
    if (kind === "calls an import") this.fault!.reenter();
    if (count <= oldBytes) return old;
    const at = Math.ceil(this.#next / align) * align;
    this.#next = at + count;
    if (kind !== "forgetful") this.bytes().copyWithin(at, old, old + oldBytes);
    return kind === "misaligned" ? at + 1 : kind === "out of bounds" ? 0xfff0 : at;
  }

  /** Frees all allocations. */
  empty(): void {
    this.#next = HEAP;
    this.bytes().fill(0, HEAP);
  }

  /** Lowers values to the memory below the heap. Returns the flat values. */
  lower(types: readonly ValType[], values: readonly unknown[], most: number): CoreValue[] {
    const { pointer, encoding } = this.options;
    const memory = new GuestMemory(
      { buffer: this.bytes().buffer as ArrayBuffer },
      pointer,
      (old, oldBytes, align, count) => {
        if (count <= oldBytes) return old;
        const at = Math.ceil(this.#values / align) * align;
        this.#values = at + count;
        if (this.#values > HEAP) throw new RangeError("The values are too large for a test");
        return at;
      },
    );
    const template = GENERATED.lowerer(types, pointer, most);
    const handles = template.handles.map((type) => ({
      lift: () => undefined,
      lower: (rep: unknown) => {
        const resource = (type as HandleType<ResourceType>).resource.id as RuntimeResource;
        return this.instance.handles.add(new ResourceHandle(resource, rep as number, true));
      },
    }));
    return template.bind({ memory, encoding, handles, foreign: false })(values);
  }

  /** Changes some of the bytes of the values. */
  damage(random: Random): void {
    const bytes = this.bytes();
    const used = this.#values - 16;
    if (used === 0) return;
    for (let k = random(8); k >= 0; k--) bytes[16 + random(used)] = BYTES[random(BYTES.length)] ?? random(256);
  }

  /** The entries of the table of handles. */
  handles(): unknown[] {
    return [...this.instance.handles].map((entry) => {
      const { resource, rep, own, lends } = entry as ResourceHandle;
      return [resource.name, rep, own, lends];
    });
  }

  flags(): unknown[] {
    return [this.instance.mayEnter, this.instance.mayLeave];
  }
}

const BYTES = [0, 1, 2, 0x7f, 0x80, 0xbf, 0xc0, 0xd8, 0xdc, 0xe0, 0xed, 0xf0, 0xf4, 0xff, undefined];

/** `type` with handles in place of some integers; keys of maps stay. */
function withHandles(type: ValType, random: Random, resources: readonly RuntimeResource[], lends: boolean): ValType {
  const inner = (part: ValType) => withHandles(part, random, resources, lends);
  const maybe = (part: ValType | undefined) => part === undefined ? undefined : inner(part);
  switch (type.kind) {
    case "u32":
    case "s32":
    case "u16":
    case "s16": {
      if (random(2) === 0) return type;
      const kind = lends && random(2) === 0 ? "borrow" : "own";
      return { kind, resource: { kind: "resource", id: resources[random(resources.length)] } };
    }
    case "list":
      return { ...type, element: inner(type.element) };
    case "record":
      return { ...type, fields: type.fields.map((field) => ({ ...field, type: inner(field.type) })) };
    case "tuple":
      return { ...type, types: type.types.map(inner) };
    case "variant":
      return { ...type, cases: type.cases.map(({ name, type: of }) => withoutUndefined({ name, type: maybe(of) })) };
    case "option":
      return { ...type, type: inner(type.type) };
    case "result":
      return withoutUndefined({ kind: "result", ok: maybe(type.ok), err: maybe(type.err) });
    case "map":
      return { ...type, value: inner(type.value) };
    default:
      return type;
  }
}

function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as T;
}

/** `value` with canonical NaNs: JavaScript may change the bits of others that it passes on. */
function plainNans(value: unknown): unknown {
  if (typeof value === "number") return Number.isNaN(value) ? NaN : value;
  if (Array.isArray(value)) return value.map(plainNans);
  if (value instanceof Map) return new Map([...value].map(([key, of]) => [key, plainNans(of)]));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, plainNans(of)]));
}

/** Whether damage can make a NaN in a value of `type`. */
function hasFloats(type: ValType): boolean {
  return someType(type, ({ kind }) => kind === "f32" || kind === "f64");
}

/** A type without floats if the values will be damaged. */
function typeFor(random: Random, fault: string): ValType {
  for (;;) {
    const type = randomType(random, 3);
    if (!hasFloats(type) || !/bytes|flat/.test(fault)) return type;
  }
}

/** A function with a string parameter, called through an adapter and through JavaScript. */
interface StringCalls {
  /** The effects of the two calls for `units` code units, which may be tagged, in `bytes`. */
  effects(bytes: Uint8Array, units: number): readonly [fused: unknown, slow: unknown];
}

/** Calls that pass strings of the encoding `from` as strings of the encoding `to`. */
export function stringCalls(from: number, to: number): StringCalls {
  const type: FuncType = { kind: "func", async: false, params: [{ name: "s", type: { kind: "string" } }] };
  const way = (fused: boolean) => {
    const root = new ComponentInstance(new Store(false, false, runReady), undefined);
    const log: unknown[][] = [];
    const side = (name: string, encoding: number) => {
      const choices = [1, encoding];
      return new Side(name, root, () => choices.shift()!, log);
    };
    const [caller, callee] = [side("caller", from), side("callee", to)];
    const core = typed(
      root.store,
      (at, units) => {
        const start = (at as number) >>> 0;
        log.push([units, callee.bytes().slice(start, start + 200)]);
      },
      ["i32", "i32"],
      [],
    );
    const item = liftFunction(core, type, callee.options);
    const call = fused ? fuse(item, caller.options, compile)! : lowerFunction(item, type, caller.options);
    return (bytes: Uint8Array, units: number) => {
      log.length = 0;
      callee.empty();
      caller.bytes().set(bytes, 64);
      return { outcome: outcomeOf(() => call(64, units | 0)), log: [...log] };
    };
  };
  const [fused, slow] = [way(true), way(false)];
  return { effects: (bytes, units) => [fused(bytes, units), slow(bytes, units)] };
}

/** All that can be observed of a call, and whether there was an adapter. */
interface Observation {
  readonly fault: string;
  readonly fused: boolean;
  readonly type: FuncType;
  readonly outcome: unknown;
  readonly log: readonly (readonly unknown[])[];
  readonly state: Readonly<Record<string, unknown>>;
}

/** Carries out the call of `seed`. */
export function observe(seed: number, fused: boolean): Observation {
  const random = randomSource(seed);
  const fault = FAULTS[random(FAULTS.length)];
  const store = new Store(false, false, runReady);
  const root = new ComponentInstance(store, undefined);
  const log: unknown[][] = [];
  const caller = new Side("caller", root, random, log);
  const hasPost = fault === "post-return" || random(2) === 0;
  const post: CoreFunction = (...args) => {
    log.push(["post-return", args.map(String), callee.flags()]);
    if (fault === "post-return") throw new RangeError("post-return fails");
  };
  const callee: Side = new Side("callee", root, random, log, hasPost ? post : undefined);
  const resources = [caller, callee].map(({ instance }, k) => new RuntimeResource(`resource-${k}`, instance));
  const count = random(6) === 0 ? 5 + random(14) : random(4);
  const plain = Array.from({ length: count }, () => typeFor(random, fault));
  const values = plain.map((type) => plainNans(randomValue(random, type).js));
  const params = plain.map((type) => withHandles(type, random, resources, true));
  const plainResult = random(4) === 0 ? undefined : typeFor(random, fault);
  const value = plainResult === undefined ? undefined : plainNans(randomValue(random, plainResult).js);
  const result = plainResult === undefined ? undefined : withHandles(plainResult, random, resources, false);
  const type: FuncType = {
    kind: "func",
    async: false,
    params: params.map((of, k) => ({ name: `p${k}`, type: of })),
    ...(result === undefined ? {} : { result }),
  };
  const args = caller.lower(params, values, 16);
  const lowered = lowerShape(type, { pointer: caller.options.pointer, isAsync: false, hasCallback: false });
  if (lowered.params.length > args.length) args.push(outPointer(random, caller, fault));
  const returned = result === undefined ? [] : callee.lower([result], [value], 1);
  const lifted = liftShape(type, { pointer: callee.options.pointer, isAsync: false, hasCallback: false });
  damage(random, fault, { caller, callee, args, returned });
  const core: CoreFunction = (...given) => {
    log.push(["call", given.map(coreText), callee.handles(), caller.handles(), callee.flags(), caller.flags()]);
    if (fault === "re-entrance") call(...args);
    if (fault !== "lasting borrows") dropBorrows(callee.instance, resources);
    return returned[0];
  };
  const shaped = typed(store, core, lifted.params, lifted.results);
  const item = liftFunction(shaped, type, callee.options);
  const adapter = fused ? fuse(item, caller.options, compile) : undefined;
  const call = adapter ?? lowerFunction(item, type, caller.options);
  const reenter = () => void call(...args);
  for (const side of [caller, callee]) {
    if (!fault.endsWith(side === caller ? "the caller" : "the callee")) continue;
    side.fault = { at: Math.max(0, random(4) - 1), kind: REALLOC_FAULTS[random(REALLOC_FAULTS.length)], reenter };
  }
  const outcome = outcomeOf(() => call(...args));
  const left = { caller: caller.flags(), callee: callee.flags(), handles: [caller.handles(), callee.handles()] };
  const state = { ...left, memories: [caller.bytes().slice(), callee.bytes().slice()] };
  store.close();
  return { fault, fused: adapter !== undefined, type, outcome, log, state };
}

/** A core function for `core`, which core code calls with its own types. */
function typed(store: Store, core: CoreFunction, params: readonly string[], results: readonly string[]): CoreFunction {
  const signature = `${params.map((type) => `(param ${type})`).join(" ")} ${
    results.map((type) => `(result ${type})`).join(" ")
  }`;
  const text = `(module (import "" "f" (func $f ${signature})) (func (export "f") ${signature} ${
    params.map((_, k) => `local.get ${k}`).join(" ")
  } call $f))`;
  const instance = compile(text).instantiate({}, { "": { f: core } });
  store.coreInstances.push(instance);
  return instance.exports["f"] as CoreFunction;
}

const compile = (text: string): Module => engine.compile(text);

function outPointer(random: Random, { options }: Side, fault: string): CoreValue {
  const at = fault === "flat arguments" && random(2) === 0 ? [0x4001, 0xffff, 0xffff_fff8][random(3)] : 0x4000;
  return options.pointer === "i64" ? BigInt(at) : at | 0;
}

interface Values {
  readonly caller: Side;
  readonly callee: Side;
  readonly args: CoreValue[];
  readonly returned: CoreValue[];
}

function damage(random: Random, fault: string, { caller, callee, args, returned }: Values): void {
  if (fault === "argument bytes") caller.damage(random);
  if (fault === "result bytes") callee.damage(random);
  if (fault === "flat arguments") damageFlat(random, args);
  if (fault === "flat result") damageFlat(random, returned);
}

const INTEGERS = [-1, 0, 1, 3, 0xd800, 0xffff, 0x1_0000, 0x11_0000, 0x7fff_ffff, -0x8000_0000, 0xffff_fff8 | 0];

function damageFlat(random: Random, flat: CoreValue[]): void {
  const k = random(flat.length);
  if (flat.length === 0) return;
  const value = random(3) === 0 ? Number(flat[k]) + 1 : INTEGERS[random(INTEGERS.length)];
  flat[k] = typeof flat[k] === "bigint" ? BigInt(Math.trunc(value)) : Number.isInteger(flat[k]) ? value | 0 : flat[k];
}

function dropBorrows(instance: ComponentInstance, resources: readonly RuntimeResource[]): void {
  for (let index = 1; index < 200; index++) {
    for (const resource of resources) {
      try {
        const entry = instance.handles.get(index) as ResourceHandle;
        if (!entry.own && entry.resource === resource) dropResource(instance, resource, index);
      } catch {
        // There is no handle.
      }
    }
  }
}

function coreText(value: CoreValue): string {
  if (typeof value === "number" && Number.isInteger(value)) return Object.is(value, -0) ? "-0" : String(value | 0);
  return String(value);
}

function outcomeOf(call: () => unknown): unknown {
  try {
    const result = call();
    return { returns: result === undefined ? undefined : coreText(result as CoreValue) };
  } catch (error) {
    return { throws: `${(error as Error).name}: ${(error as Error).message}` };
  }
}

/**
 * The part of the observations that must be equal to those of the call through JavaScript, which is `slow`. There the
 * result is lowered after `post-return`, while an adapter lowers it before, as the specification has it; a trap of one
 * of the two steps shows the order.
 */
export function comparable({ outcome, log, state }: Observation, slow: Observation): unknown {
  const without = (event: string) => log.filter(([name]) => name !== event);
  const throws = Object.hasOwn(slow.outcome as object, "throws");
  const { caller, callee, handles, memories } = state;
  if (throws && slow.log.at(-1)?.[0] === "post-return" && slow.fault === "post-return") {
    return { outcome, log: without("caller realloc"), caller, callee };
  }
  const isLeft = (slow.state["callee"] as unknown[])[FLAG.ENTER] === true;
  if (throws && isLeft && slow.log.some(([name]) => name === "call")) {
    return { outcome, log: without("post-return"), caller, handles, memories };
  }
  return { outcome, log: without("post-return"), post: log.filter(([name]) => name === "post-return"), state };
}
