/**
 * Instrumentation for the debugger. In: a valid module. Out: a module that does the same and can be stopped before each
 * of its instructions, whose activations and locals are in a memory that the debugger reads and writes.
 *
 * Everything that is added comes last in its index space, so that no index of the module changes: a memory, a table
 * with the function that stops, three globals, four functions. The added memory begins with one byte per location,
 * which is not zero where the program shall stop; records of activations follow, oldest first. The global `left` counts
 * epochs down; the debugger is called where it becomes zero.
 *
 * A part is a module that runs with others that are debugged: a core module of a component, a guest with plugins. It
 * exports functions of its own in place of the module's, by which other modules and the host enter it. Its table also
 * has the functions of the program's clock (activation_clock.ts), and its records have times, which order the
 * activations of all parts.
 *
 * A location is an instruction, or the end of a function. An epoch begins at the start of a function, at each turn of a
 * loop, and where a function goes on after a call or in a catch clause. The program passes a location at most once in
 * an epoch, and at least one location, so an epoch and a location tell a moment of the run.
 *
 * Invariants: while a function runs, the global `current` is the address of its record; numeric locals are read from
 * and written to the record alone, so a change of the record is a change of the local. References stay in locals, where
 * the debugger does not see them.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { encodeModule } from "@waft/engine/internal/binary/encode";
import { CodeReader } from "@waft/engine/internal/wasm/code_reader";
import type { Export, Module, RawBytes } from "@waft/engine/internal/wasm/module";
import { idOf, type Mnemonic, OPCODES } from "@waft/engine/internal/wasm/opcodes";
import {
  byteSize,
  F32,
  F64,
  FUNCREF,
  type FuncType,
  I32,
  I64,
  isRef,
  V128,
  type ValType,
} from "@waft/engine/internal/wasm/types";
import { Assembler } from "@waft/engine/internal/instrument/assembler";
import { requireBodySize } from "@waft/engine/internal/instrument/body_limit";

/** The record of an activation: offsets of its fields, of 4 bytes each, and of its first local. */
export const RECORD = { FUNC: 0, CALLER: 4, LOCATION: 8, SIZE: 12, LOCALS: 16 } as const;
/** In parts, three times of 8 bytes come before the locals: offsets of these fields, and of the first local. */
export const TIMES = { BEGUN: 16, RESUMED: 24, SINCE: 32, LOCALS: 40 } as const;
/** The elements of the added table: the function that stops, and in parts the functions of the clock. */
export const ELEMENT = { STOP: 0, NEXT: 1, BEGIN: 2, LEAVE: 3 } as const;
const PAGE = 65536;
/** The number of pages by which the added memory grows, and its limit: 256 MiB of activations. */
const GROWTH = 16;
const MAX_PAGES = 4096;
/** The number of locals that are cleared one by one; more are filled at once. */
const MAX_STORES = 16;

/** A local: its type, and its offset in the record; −1 for a reference. */
export interface LocalSlot {
  readonly type: ValType;
  readonly offset: number;
}

/** A function that the module defines. */
export interface DebuggedFunction {
  /** The function index. */
  readonly index: number;
  /** The number of its first location; the next function's first location is the end. */
  readonly firstLocation: number;
  /** Parameters, then declared locals. */
  readonly locals: readonly LocalSlot[];
}

/** An instrumented module. */
export interface Instrumented {
  readonly bytes: Uint8Array;
  /** The offset of each location in the binary form of the module, ascending. */
  readonly offsets: Int32Array;
  readonly functions: readonly DebuggedFunction[];
  /** The address of the first record. */
  readonly records: number;
  /** The offset in the instrumented binary form at which each location's own code begins, ascending. */
  readonly positions: Int32Array;
  /** Whether records have the times of their activations. */
  readonly isPart: boolean;
  /** Names of the exports that the debugger uses. */
  readonly names: {
    readonly memory: string;
    readonly table: string;
    readonly current: string;
    readonly top: string;
    readonly left: string;
    readonly start: string | undefined;
    readonly globals: readonly string[];
    readonly memories: readonly string[];
  };
}

/** The indices of everything that is added. */
interface Added {
  readonly memory: number;
  readonly table: number;
  readonly current: number;
  readonly top: number;
  readonly left: number;
  readonly stopType: number;
  /** The types of the functions of the clock; undefined where records have no times. */
  readonly clock: { readonly next: number; readonly begin: number; readonly leave: number } | undefined;
  readonly enter: number;
  readonly resume: number;
  readonly leave: number;
  readonly stop: number;
}

const LOAD: ReadonlyMap<ValType, Mnemonic> = new Map<ValType, Mnemonic>([
  [I32, "i32.load"],
  [I64, "i64.load"],
  [F32, "f32.load"],
  [F64, "f64.load"],
  [V128, "v128.load"],
]);
const STORE: ReadonlyMap<ValType, Mnemonic> = new Map<ValType, Mnemonic>([
  [I32, "i32.store"],
  [I64, "i64.store"],
  [F32, "f32.store"],
  [F64, "f64.store"],
  [V128, "v128.store"],
]);

/** The writer's treatment of an instruction; 0: it copies it. */
const CALL = 1;
const TAIL_CALL = 2;
const LOCAL = 3;
const CATCH = 4;
const OPEN = 5;
const CLOSE = 6;
const ELSE = 7;
const THROW = 8;
const LOOP = 9;
const TREATMENT = new Uint8Array(OPCODES.length);
for (
  const [treatment, ...names] of [
    [CALL, "call", "call_indirect", "call_ref"],
    [TAIL_CALL, "return_call", "return_call_indirect", "return_call_ref"],
    [LOCAL, "local.get", "local.set", "local.tee"],
    [CATCH, "catch", "catch_all"],
    [OPEN, "block", "if", "try", "try_table"],
    [LOOP, "loop"],
    [CLOSE, "end", "delegate"],
    [ELSE, "else"],
    [THROW, "throw", "throw_ref", "rethrow"],
  ] as const
) for (const name of names) TREATMENT[idOf(name)] = treatment;
const TRY_TABLE = idOf("try_table");
const LOCAL_GET = idOf("local.get");
const LOCAL_SET = idOf("local.set");

/** The locations of a module: the offsets of its instructions in the binary form, function by function. */
export function locationOffsets(module: Module): Int32Array {
  const offsets: number[] = [];
  for (const { body } of module.funcs) {
    const reader = new CodeReader(body.bytes, 0, body.bytes.length, body.offset);
    reader.locals();
    for (let depth = 0; depth >= 0;) {
      const treatment = TREATMENT[reader.next()];
      if (treatment === OPEN || treatment === LOOP) depth++;
      else if (treatment === CLOSE) depth--;
      if (depth < 0 || (treatment !== ELSE && treatment !== CATCH && treatment !== CLOSE)) offsets.push(reader.at);
    }
  }
  return Int32Array.from(offsets);
}

/**
 * Instruments the module with the binary form `bytes`, as a part if `isPart`: a call of an export then removes its
 * activations when it returns, since other parts make many such calls in a run. Throws an Error for modules with shared
 * memories.
 */
export function instrument(bytes: Uint8Array, isPart = false): Instrumented {
  return new Instrumenter(decodeModule(bytes), isPart).run();
}

class Instrumenter {
  readonly #module: Module;
  readonly #imported = { func: 0, table: 0, memory: 0, global: 0, tag: 0 };
  readonly #types: Module["types"];
  readonly #recGroups: Module["recGroups"];
  readonly #prefix: string;
  readonly #offsets: Int32Array;
  /** The position of each location in the new body of its function. */
  readonly #positions: number[] = [];
  readonly #functions: DebuggedFunction[] = [];
  /** The functions of the module whose exports are replaced, its start function included. */
  readonly #entered: readonly number[];
  /** Their positions in that list. */
  readonly #entries: ReadonlyMap<number, number>;
  readonly #isPart: boolean;

  constructor(module: Module, isPart: boolean) {
    this.#module = module;
    this.#isPart = isPart;
    this.#offsets = locationOffsets(module);
    this.#types = [...module.types];
    this.#recGroups = [...module.recGroups];
    for (const { desc } of module.imports) this.#imported[desc.kind]++;
    const exported = module.exports.filter(({ kind }) => kind === "func").map(({ index }) => index);
    const entries = [...exported, ...(module.start === undefined ? [] : [module.start])];
    this.#entered = isPart ? [...new Set(entries.filter((index) => index >= this.#imported.func))] : [];
    this.#entries = new Map(this.#entered.map((index, k) => [index, k]));
    let prefix = "waft.debug.";
    while (module.exports.some(({ name }) => name.startsWith(prefix))) prefix += "_";
    this.#prefix = prefix;
    const memories = module.imports.flatMap(({ desc }) => desc.kind === "memory" ? [desc.type] : []);
    if ([...memories, ...module.memories].some(({ shared }) => shared)) {
      throw new Error(
        "a module with shared memories cannot be debugged: its threads would have to be stopped together",
      );
    }
  }

  run(): Instrumented {
    const module = this.#module;
    const imported = this.#imported;
    const funcs = imported.func + module.funcs.length;
    const added: Added = {
      memory: imported.memory + module.memories.length,
      table: imported.table + module.tables.length,
      current: imported.global + module.globals.length,
      top: imported.global + module.globals.length + 1,
      left: imported.global + module.globals.length + 2,
      stopType: this.#type([I32], []),
      clock: this.#isPart
        ? { next: this.#type([], [I64]), begin: this.#type([], [I64, I64]), leave: this.#type([I64], []) }
        : undefined,
      enter: funcs,
      resume: funcs + 1,
      leave: funcs + 2,
      stop: funcs + 3,
    };
    const bodies = module.funcs.map(({ typeIndex, body }, k) => this.#body(imported.func + k, typeIndex, body, added));
    const records = (this.#offsets.length + 15) & ~15;
    const pages = BigInt(Math.ceil(records / PAGE) + GROWTH);
    const frameType = this.#type([I32], []);
    const elements = this.#isPart ? BigInt(Object.keys(ELEMENT).length) : 1n;
    const names = this.#names(added);
    const output: Module = {
      ...module,
      types: this.#types,
      recGroups: this.#recGroups,
      funcs: [
        ...module.funcs.map(({ typeIndex }, k) => ({ typeIndex, body: bodies[k] })),
        { typeIndex: this.#type([I32, I32], [I32]), body: enterBody(added) },
        { typeIndex: frameType, body: resumeBody(added) },
        { typeIndex: frameType, body: leaveBody(added) },
        { typeIndex: this.#type([I32, I32], []), body: stopBody(added) },
        ...this.#entered.map((index) => this.#entry(index, added)),
      ],
      elems: this.#entered.length === 0 ? module.elems : [...module.elems, {
        type: FUNCREF,
        // `ref.func` needs the functions to be named outside of bodies, as their exports did.
        init: { kind: "funcs", indices: this.#entered },
        mode: { kind: "declarative" },
        offset: 0,
      }],
      tables: [...module.tables, {
        type: { limits: { address: I32, min: elements, max: elements }, element: FUNCREF },
      }],
      memories: [...module.memories, {
        limits: { address: I32, min: pages, max: BigInt(MAX_PAGES) > pages ? BigInt(MAX_PAGES) : pages },
        shared: false,
      }],
      globals: [
        ...module.globals,
        ...[0, records].map((value) => ({
          type: { type: I32, mutable: true },
          init: expression(added, (out) => out.constant(value)),
        })),
        { type: { type: I64, mutable: true }, init: expression(added, (out) => out.wide(0)) },
      ],
      exports: [...module.exports.map((each) => this.#entering(each, added)), ...this.#exports(names, added)],
      customs: [],
    };
    delete output.start;
    const encoded = encodeModule(output);
    return {
      bytes: encoded,
      offsets: this.#offsets,
      functions: this.#functions,
      records,
      positions: this.#absolutePositions(encoded),
      isPart: this.#isPart,
      names,
    };
  }

  /** The function that is exported in place of function `index`: it removes the activations of the call. */
  #entry(index: number, added: Added): Module["funcs"][number] {
    const { typeIndex } = this.#module.funcs[index - this.#imported.func];
    const { params: { length } } = this.#module.types[typeIndex].composite as FuncType;
    const globals = [added.current, added.top];
    const body = codeOf(added, [I32, I32], (out) => {
      globals.forEach((global, k) => out.op("global.get", global).op("local.set", length + k));
      for (let k = 0; k < length; k++) out.op("local.get", k);
      out.op("call", index);
      globals.forEach((global, k) => out.op("local.get", length + k).op("global.set", global));
    });
    return { typeIndex, body };
  }

  /** An export of the module, with the function that replaces its own. */
  #entering(entry: Export, added: Added): Export {
    const k = entry.kind === "func" ? this.#entries.get(entry.index) : undefined;
    return k === undefined ? entry : { ...entry, index: added.stop + 1 + k };
  }

  /** The index of a new function type. */
  #type(params: ValType[], results: ValType[]): number {
    const composite: FuncType = { kind: "func", params, results };
    this.#recGroups.push({ start: this.#types.length, count: 1 });
    return this.#types.push({ final: true, supertypes: [], composite }) - 1;
  }

  #names({ memory, current }: Added): Instrumented["names"] {
    const named = (kind: string, count: number) =>
      Array.from({ length: count }, (_, k) => `${this.#prefix}${kind}.${k}`);
    return {
      memory: `${this.#prefix}records`,
      table: `${this.#prefix}stop`,
      current: `${this.#prefix}current`,
      top: `${this.#prefix}top`,
      left: `${this.#prefix}left`,
      start: this.#module.start === undefined ? undefined : `${this.#prefix}start`,
      globals: named("global", current),
      memories: named("memory", memory),
    };
  }

  #exports(names: Instrumented["names"], added: Added): Export[] {
    const { start } = this.#module;
    const entry = (name: string, kind: Export["kind"], index: number): Export => ({ name, kind, index, offset: 0 });
    const begin = start === undefined || names.start === undefined ? [] : [entry(names.start, "func", start)];
    return [
      entry(names.memory, "memory", added.memory),
      entry(names.table, "table", added.table),
      entry(names.current, "global", added.current),
      entry(names.top, "global", added.top),
      entry(names.left, "global", added.left),
      ...begin.map((each) => this.#entering(each, added)),
      ...names.globals.map((name, index) => entry(name, "global", index)),
      ...names.memories.map((name, index) => entry(name, "memory", index)),
    ];
  }

  #body(index: number, typeIndex: number, body: RawBytes, added: Added): RawBytes {
    const type = this.#module.types[typeIndex].composite as FuncType;
    const reader = new CodeReader(body.bytes, 0, body.bytes.length, body.offset);
    const declared: ValType[] = [];
    reader.locals(declared);
    const locals = slotsOf([...type.params, ...declared], firstLocal(added));
    const writer = new BodyWriter(added, locals, this.#offsets, this.#positions);
    this.#functions.push({ index, firstLocation: this.#positions.length, locals });
    writer.begin(index, type.params.length, declared);
    writer.instructions(reader);
    const bytes = writer.finish();
    requireBodySize(index, body.bytes.length, bytes.length);
    return { bytes, offset: 0 };
  }

  #absolutePositions(encoded: Uint8Array): Int32Array {
    const { funcs } = decodeModule(encoded);
    const positions = Int32Array.from(this.#positions);
    this.#functions.forEach(({ firstLocation }, k) => {
      const end = this.#functions[k + 1]?.firstLocation ?? positions.length;
      for (let at = firstLocation; at < end; at++) positions[at] += funcs[k].body.offset;
    });
    return positions;
  }
}

/** The offset of the first local in a record. */
function firstLocal({ clock }: Added): number {
  return clock === undefined ? RECORD.LOCALS : TIMES.LOCALS;
}

/** The places of locals in a record, from offset `first` on: numeric ones by size, in order. */
function slotsOf(types: readonly ValType[], first: number): LocalSlot[] {
  let next = first;
  return types.map((type) => {
    if (isRef(type)) return { type, offset: -1 };
    const offset = next;
    next += Math.max(8, byteSize(type));
    return { type, offset };
  });
}

/** The size of a record with these locals, the first of which is at offset `first`. */
function recordSize(locals: readonly LocalSlot[], first: number): number {
  const end = locals.reduce((end, { type, offset }) => offset < 0 ? end : offset + Math.max(8, byteSize(type)), 0);
  return Math.max(first, (end + 15) & ~15);
}

/** Writes the instrumented body of one function. */
class BodyWriter extends Assembler {
  readonly #added: Added;
  readonly #locals: readonly LocalSlot[];
  /** The local with the address of the record. */
  readonly #record: number;
  /** The size of the record. */
  readonly #size: number;
  readonly #offsets: Int32Array;
  readonly #positions: number[];
  /** Whether control may arrive at the end of a block from a catch clause. */
  #catches = false;

  constructor(added: Added, locals: readonly LocalSlot[], offsets: Int32Array, positions: number[]) {
    super(added.memory, 1024);
    this.#added = added;
    this.#locals = locals;
    this.#record = locals.length;
    this.#size = recordSize(locals, firstLocal(added));
    this.#offsets = offsets;
    this.#positions = positions;
  }

  /** Local declarations, and the code that makes the record. */
  begin(index: number, params: number, declared: readonly ValType[]): void {
    this.locals([...declared, I32]);
    this.constant(index).constant(this.#size).op("call", this.#added.enter).op("local.set", this.#record);
    for (let k = 0; k < params; k++) this.#save(k);
    this.#clear(params);
    this.#epoch();
  }

  /** Clears the locals from number `first` on in the record, which may have those of an earlier activation. */
  #clear(first: number): void {
    const slots = this.#locals.slice(first).filter(({ offset }) => offset >= 0);
    if (slots.length > MAX_STORES) {
      const { offset } = slots[0];
      const bytes = this.#size - offset;
      this.op("local.get", this.#record).constant(offset).op("i32.add").constant(0).constant(bytes);
      this.op("memory.fill", this.#added.memory);
      return;
    }
    for (const { type, offset } of slots) {
      for (let at = 0; at < byteSize(type); at += 8) {
        this.op("local.get", this.#record).wide(0).access("i64.store", offset + at);
      }
    }
  }

  /** Copies a numeric local into the record. */
  #save(local: number): void {
    const { type, offset } = this.#locals[local];
    if (offset < 0) return;
    this.op("local.get", this.#record).op("local.get", local).access(STORE.get(type)!, offset);
  }

  /** The instructions of the body that `reader` is in. */
  instructions(reader: CodeReader): void {
    const { bytes } = reader;
    while (!reader.done) {
      const from = reader.pos;
      const id = reader.next();
      const treatment = TREATMENT[id];
      const location = reader.at === this.#offsets[this.#positions.length] ? this.#location() : -1;
      if (id === TRY_TABLE) this.#catches = true;
      if (treatment === CALL || treatment === THROW) this.#storeLocation(location);
      else if (treatment === TAIL_CALL) this.op("local.get", this.#record).op("call", this.#added.leave);
      if (treatment === LOCAL && this.#locals[reader.imm.index].offset >= 0) this.#local(id, reader.imm.index);
      else this.raw(bytes.subarray(from, reader.pos));
      if (reader.done) return;
      const goesOn = treatment === CALL || treatment === CATCH || (this.#catches && treatment === CLOSE);
      if (goesOn || (this.#catches && treatment === LOOP)) {
        this.op("local.get", this.#record).op("call", this.#added.resume);
      }
      if (goesOn || treatment === LOOP) this.#epoch();
    }
  }

  /** The code that stops at the next location, whose number it returns. */
  #location(): number {
    const location = this.#positions.push(this.length) - 1;
    this.constant(0).access("i32.load8_u", location).when();
    this.op("local.get", this.#record).constant(location).op("call", this.#added.stop).op("end");
    return location;
  }

  /** Begins an epoch, and calls the debugger if it waits for this one. */
  #epoch(): void {
    const { left } = this.#added;
    this.op("global.get", left).wide(1).op("i64.sub").op("global.set", left);
    this.op("global.get", left).op("i64.eqz").when();
    this.op("local.get", this.#record).constant(this.#positions.length).op("call", this.#added.stop).op("end");
  }

  #storeLocation(location: number): void {
    this.op("local.get", this.#record).constant(location).access("i32.store", RECORD.LOCATION);
  }

  /** An access to a numeric local, which is in the record. */
  #local(id: number, local: number): void {
    const { type, offset } = this.#locals[local];
    if (id === LOCAL_GET) {
      this.op("local.get", this.#record).access(LOAD.get(type)!, offset);
      return;
    }
    this.op(id === LOCAL_SET ? "local.set" : "local.tee", local);
    this.#save(local);
  }
}

function expression({ memory }: Added, write: (out: Assembler) => Assembler): RawBytes {
  return { bytes: write(new Assembler(memory)).op("end").finish(), offset: 0 };
}

function codeOf({ memory }: Added, locals: readonly ValType[], write: (out: Assembler) => void): RawBytes {
  const out = new Assembler(memory);
  out.locals(locals);
  write(out);
  out.op("end");
  return { bytes: out.finish(), offset: 0 };
}

/** `enter(func, size)`: makes the record of an activation and returns its address. */
function enterBody(added: Added): RawBytes {
  const { memory, current, top, clock, table } = added;
  return codeOf(added, clock === undefined ? [I32] : [I32, I64, I64], (out) => {
    out.op("global.get", top).op("local.set", 2);
    // Grow if the end of the record is beyond the last page.
    out.op("local.get", 2).op("local.get", 1).op("i32.add").constant(PAGE - 1).op("i32.add").constant(16).op(
      "i32.shr_u",
    );
    out.op("memory.size", memory).op("i32.gt_u").when();
    out.constant(GROWTH).op("memory.grow", memory).constant(-1).op("i32.eq").when().op("unreachable").op("end").op(
      "end",
    );
    out.op("local.get", 2).op("local.get", 0).access("i32.store", RECORD.FUNC);
    out.op("local.get", 2).op("global.get", current).access("i32.store", RECORD.CALLER);
    out.op("local.get", 2).constant(-1).access("i32.store", RECORD.LOCATION);
    out.op("local.get", 2).op("local.get", 1).access("i32.store", RECORD.SIZE);
    out.op("local.get", 2).op("global.set", current);
    out.op("local.get", 2).op("local.get", 1).op("i32.add").op("global.set", top);
    if (clock !== undefined) {
      out.constant(ELEMENT.BEGIN).op("call_indirect", clock.begin, table).op("local.set", 4).op("local.set", 3);
      out.op("local.get", 2).op("local.get", 3).access("i64.store", TIMES.BEGUN);
      out.op("local.get", 2).op("local.get", 4).access("i64.store", TIMES.SINCE);
      out.op("local.get", 2).wide(0).access("i64.store", TIMES.RESUMED);
    }
    out.op("local.get", 2);
  });
}

/** `resume(record)`: the activation with this record runs again; later ones have ended. */
function resumeBody(added: Added): RawBytes {
  const { current, top, clock, table } = added;
  return codeOf(added, [], (out) => {
    if (clock !== undefined) {
      out.op("local.get", 0).constant(ELEMENT.NEXT).op("call_indirect", clock.next, table);
      out.access("i64.store", TIMES.RESUMED);
    }
    out.op("local.get", 0).op("global.set", current);
    out.op("local.get", 0).op("local.get", 0).access("i32.load", RECORD.SIZE).op("i32.add").op("global.set", top);
  });
}

/** `leave(record)`: the activation with this record is about to be replaced by a tail call. */
function leaveBody(added: Added): RawBytes {
  const { current, top, clock, table } = added;
  return codeOf(added, [], (out) => {
    if (clock !== undefined) {
      out.op("local.get", 0).access("i64.load", TIMES.SINCE);
      out.constant(ELEMENT.LEAVE).op("call_indirect", clock.leave, table);
    }
    out.op("local.get", 0).access("i32.load", RECORD.CALLER).op("global.set", current);
    out.op("local.get", 0).op("global.set", top);
  });
}

/** `stop(record, location)`: stores the location in the record and calls the debugger. */
function stopBody(added: Added): RawBytes {
  const { stopType, table, resume } = added;
  return codeOf(added, [], (out) => {
    out.op("local.get", 0).op("local.get", 1).access("i32.store", RECORD.LOCATION);
    out.op("local.get", 0).op("call", resume);
    out.op("local.get", 1).constant(ELEMENT.STOP).op("call_indirect", stopType, table);
  });
}
