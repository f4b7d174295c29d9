/**
 * Random function bodies: typed expressions and statements written straight to bytes. In: a plan of the module and a function of
 * it. Out: the body and an upper estimate of what running it costs.
 *
 * Every run ends: a loop has a counter that nothing else writes, direct calls go to functions that are finished (so their cost is
 * known) or recurse on a falling argument, indirect calls reach only functions that make none themselves. NaN bits stay
 * invisible: whatever stores, reinterprets or takes the sign of a computed float makes a NaN canonical first.
 */
import { Bytes, isFloat, isReference, type Signature, TYPE, type TypeName } from "./module_bytes.ts";
import {
  isDivision,
  isTruncation,
  LOADS,
  NUMERIC_OPS,
  type NumericOp,
  saturating,
  showsNaN,
  STORES,
} from "./numeric_rows.ts";
import type { Random } from "./random.ts";

export interface PlannedFunction {
  readonly index: number;
  readonly signature: Signature;
  /** May lie in a table, so makes no indirect calls. */
  readonly tabled: boolean;
  /** "plain", "falling": recurses on its first parameter, "endless": recurses until the stack is used up. */
  readonly style: "plain" | "falling" | "endless";
  /** Most steps that one call takes; undefined until the body exists. */
  cost: number | undefined;
}

export interface ModulePlan {
  readonly random: Random;
  readonly features: ReadonlySet<string>;
  readonly functions: readonly PlannedFunction[];
  readonly globals: readonly { type: TypeName; mutable: boolean }[];
  readonly memory: { min: number; max: number } | undefined;
  readonly tables: readonly { type: TypeName; min: number; max: number }[];
  readonly dataLengths: readonly number[];
  readonly elems: readonly { type: TypeName; length: number }[];
  /** Functions that ref.func may name. */
  readonly referable: readonly number[];
  typeIndex(signature: Signature): number;
}

interface Label {
  /** What a branch to it carries; undefined when branching there is not allowed. */
  readonly types: readonly TypeName[] | undefined;
}

/** Most steps a function may take. */
const COST_LIMIT = 30_000;
/** Most calls deep that "falling" recursion goes. */
const FALL = 40;

const NUMBERS: readonly TypeName[] = ["i32", "i64", "f32", "f64"];
const OPS_BY_RESULT: Readonly<Record<string, readonly NumericOp[]>> = Object.fromEntries(
  NUMBERS.map((type) => [type, NUMERIC_OPS.filter((op) => op.result === type)]),
);

/** Operations for updates in place. */
const BINARY_OPS: Readonly<Record<string, readonly number[]>> = {
  i32: [0x6a, 0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78],
  i64: [0x7c, 0x7c, 0x7d, 0x7e, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a],
  f32: [0x92, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97],
  f64: [0xa0, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5],
};

const OP = {
  unreachable: 0x00,
  nop: 0x01,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  drop: 0x1a,
  select: 0x1b,
  selectTyped: 0x1c,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  tableGet: 0x25,
  tableSet: 0x26,
  memorySize: 0x3f,
  memoryGrow: 0x40,
  refNull: 0xd0,
  refIsNull: 0xd1,
  refFunc: 0xd2,
} as const;

/** Writes one body. */
export class BodyGenerator {
  readonly #plan: ModulePlan;
  readonly #self: PlannedFunction;
  readonly #random: Random;
  readonly #out = new Bytes();
  readonly #locals: TypeName[];
  /** Locals that statements may write. */
  readonly #writable: boolean[];
  readonly #labels: Label[] = [];
  readonly #snippets: { type: TypeName; code: Uint8Array }[] = [];
  #scratch: Partial<Record<TypeName, number>> = {};
  #counters: number[] = [];
  #budget: number;
  #weight = 1;
  #cost = 0;
  #impure = 0;
  #selfCalls = 0;

  constructor(plan: ModulePlan, self: PlannedFunction, budget: number) {
    this.#plan = plan;
    this.#self = self;
    this.#random = plan.random;
    this.#budget = budget;
    const random = plan.random;
    const count = random.chance(1)
      ? random.between(100, 1200)
      : random.chance(15)
      ? random.between(12, 40)
      : random.below(9);
    const types = this.#types();
    this.#locals = [...self.signature.params, ...Array.from({ length: count }, () => this.#random.pick(types))];
    this.#writable = this.#locals.map((_, i) => !(self.style !== "plain" && i === 0));
  }

  /** The code entry: locals and instructions. */
  generate(): { code: Bytes; cost: number } {
    const { signature, style } = this.#self;
    this.#labels.push({ types: signature.results });
    if (style === "falling") this.#fallGuard();
    if (style === "endless") {
      this.#weight = 2000; // no loops, no calls: this runs for every frame that the stack holds
      this.#statement(2);
      for (const type of signature.params) this.#expression(type, 1);
      this.#weight = 1;
      this.#cost = 0;
      this.#out.byte(OP.call).u32(this.#self.index);
      this.#consume(signature.results);
    }
    this.#body(signature.results, this.#random.between(2, 5));
    this.#out.byte(OP.end);
    const declared = this.#locals.slice(signature.params.length);
    const runs: Bytes[] = [];
    for (let i = 0; i < declared.length;) {
      let n = 1;
      while (i + n < declared.length && declared[i + n] === declared[i]) n++;
      runs.push(new Bytes().u32(n).byte(TYPE[declared[i]!]));
      i += n;
    }
    const entry = new Bytes().vector(runs).bytes(this.#out.taken());
    const own = this.#cost + 5;
    const cost = style === "falling" ? own * FALL : style === "endless" ? Infinity : own;
    return { code: new Bytes().u32(entry.length).bytes(entry.taken()), cost };
  }

  #has(feature: string): boolean {
    return this.#plan.features.has(feature);
  }

  #types(): readonly TypeName[] {
    const numbers: TypeName[] = ["i32", "i32", "i32", "i64", "i64", "f32", "f64", "f64"];
    return this.#has("reference-types") ? [...numbers, "funcref", "externref"] : numbers;
  }

  #newLocal(type: TypeName, writable: boolean): number {
    this.#locals.push(type);
    this.#writable.push(writable);
    return this.#locals.length - 1;
  }

  #get(local: number): void {
    this.#out.byte(OP.localGet).u32(local);
  }

  #step(): void {
    this.#budget--;
    this.#cost += this.#weight;
  }

  /** Falling recursion ends when its argument is not in 1 … FALL. */
  #fallGuard(): void {
    const out = this.#out;
    this.#get(0);
    out.byte(0x41).s32(1).byte(0x6b).byte(0x41).s32(FALL).byte(0x4f); // argument − 1 ≥ FALL, unsigned
    out.byte(OP.if).byte(0x40);
    this.#labels.push({ types: [] });
    for (const type of this.#self.signature.results) this.#leaf(type);
    out.byte(OP.return).byte(OP.end);
    this.#labels.pop();
  }

  // ---- sequences ----------------------------------------------------------------------------------------------------

  /** Statements, then `results` on the stack; or statements and a branch away. */
  #body(results: readonly TypeName[], depth: number): void {
    const count = this.#random.below(depth + 2);
    for (let i = 0; i < count && this.#budget > 0; i++) this.#statement(depth);
    if (this.#labels.length > 1 && this.#random.chance(12)) this.#leave(depth);
    else for (const type of results) this.#expression(type, depth);
  }

  /** Code after which nothing runs; sometimes dead code behind it. */
  #leave(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const labels = this.#branchTargets();
    if (labels.length === 0 || random.chance(4)) {
      if (random.chance(10)) out.byte(OP.unreachable);
      else {
        for (const type of this.#self.signature.results) this.#expression(type, depth - 2);
        out.byte(OP.return);
      }
    } else {
      const label = random.pick(labels);
      const types = this.#labelTypes(label);
      for (const type of types) this.#expression(type, depth - 2);
      if (random.chance(40)) {
        const same = labels.filter((l) => this.#labelTypes(l).join() === types.join());
        this.#expression("i32", depth - 2);
        out.byte(OP.brTable);
        const count = random.below(8);
        out.u32(count);
        for (let i = 0; i < count; i++) out.u32(random.pick(same));
        out.u32(label);
      } else out.byte(OP.br).u32(label);
    }
    this.#impure++;
    if (random.chance(15)) {
      const op = random.pick(NUMERIC_OPS);
      this.#opcode(op.code);
      out.byte(OP.drop);
      if (random.chance(30)) this.#expression("i32", 1), out.byte(OP.drop);
    }
  }

  #branchTargets(): number[] {
    const depths: number[] = [];
    this.#labels.forEach((label, i) => {
      if (label.types !== undefined) depths.push(this.#labels.length - 1 - i);
    });
    return depths;
  }

  #labelTypes(depth: number): readonly TypeName[] {
    return this.#labels[this.#labels.length - 1 - depth]!.types!;
  }

  // ---- statements ---------------------------------------------------------------------------------------------------

  #statement(depth: number): void {
    this.#step();
    const random = this.#random;
    const out = this.#out;
    const deep = depth > 0 && this.#budget > 0;
    const memory = this.#plan.memory !== undefined;
    const bulk = this.#has("bulk-memory-operations");
    const references = this.#has("reference-types") && this.#plan.tables.length > 0;
    switch (
      random.weighted([
        30, // local.set
        8, // global.set
        memory ? 18 : 0, // store
        3, // drop
        deep ? 10 : 0, // if
        deep ? 4 : 0, // block
        deep && this.#weight < 1000 ? 9 : 0, // loop
        5, // br_if
        8, // call
        memory && bulk ? 3 : 0,
        references ? 4 : 0,
        1, // nop
        deep ? 2 : 0, // switch
        deep ? 2 : 0, // multi-value block
        1, // early return, rarely unreachable
        4, // locals change places
        memory ? 5 : 0, // accesses by one base
        14, // local or global op= expression
        memory ? 6 : 0, // memory op= expression
      ])
    ) {
      case 0:
        return this.#localSet(depth);
      case 1: {
        const globals = this.#plan.globals.flatMap((g, i) => g.mutable ? [i] : []);
        if (globals.length === 0) return this.#localSet(depth);
        const index = random.pick(globals);
        this.#expression(this.#plan.globals[index]!.type, depth);
        out.byte(OP.globalSet).u32(index);
        return;
      }
      case 2:
        return this.#store(depth);
      case 3:
        this.#expression(random.pick(this.#types()), depth);
        out.byte(OP.drop);
        return;
      case 4:
        return this.#if([], depth);
      case 5:
        return this.#block([], depth);
      case 6:
        return this.#loop([], depth);
      case 7: {
        const labels = this.#branchTargets().filter((l) => this.#labelTypes(l).length === 0);
        if (labels.length === 0) return this.#localSet(depth);
        this.#condition(depth - 1);
        out.byte(OP.brIf).u32(random.pick(labels));
        return;
      }
      case 8: {
        const results = this.#call(depth, undefined);
        if (results === undefined) return this.#localSet(depth);
        this.#consume(results);
        return;
      }
      case 9:
        return this.#bulkMemory(depth);
      case 10:
        return this.#tableStatement(depth);
      case 11:
        out.byte(OP.nop);
        return;
      case 12:
        return this.#switch(depth);
      case 13:
        return this.#multiValueBlock(depth);
      case 15:
        return this.#permute();
      case 16:
        return this.#accessRun(depth);
      case 17:
        return this.#accumulate(depth);
      case 18:
        return this.#updateMemory(depth);
      default:
        this.#condition(depth - 1);
        out.byte(OP.if).byte(0x40);
        this.#labels.push({ types: [] });
        if (random.chance(6)) out.byte(OP.unreachable);
        else {
          for (const type of this.#self.signature.results) this.#expression(type, depth - 2);
          out.byte(OP.return);
        }
        out.byte(OP.end);
        this.#labels.pop();
    }
  }

  #localSet(depth: number): void {
    const choices = this.#writable.flatMap((writable, i) => writable ? [i] : []);
    const local = choices.length === 0 || (choices.length < 4 && this.#random.chance(20))
      ? this.#newLocal(this.#random.pick(this.#types()), true)
      : this.#random.pick(choices);
    this.#expression(this.#locals[local]!, depth);
    this.#out.byte(OP.localSet).u32(local);
  }

  /** A local or global that is combined with something again and again: what loops do. */
  #accumulate(depth: number): void {
    const random = this.#random;
    const locals = this.#locals.flatMap((t, i) => !isReference(t) && this.#writable[i]! ? [i] : []);
    const globals = this.#plan.globals.flatMap((g, i) => g.mutable && !isReference(g.type) ? [i] : []);
    const global = globals.length > 0 && random.chance(40);
    if (!global && locals.length === 0) return this.#localSet(depth);
    const index = random.pick(global ? globals : locals);
    const type = global ? this.#plan.globals[index]!.type : this.#locals[index]!;
    const ops = BINARY_OPS[type]!;
    const swapped = random.chance(20);
    if (swapped) this.#expression(type, depth - 1);
    this.#out.byte(global ? OP.globalGet : OP.localGet).u32(index);
    if (!swapped) random.chance(25) ? this.#leafConstant(type) : this.#expression(type, depth - 1);
    this.#out.byte(random.pick(ops)).byte(global ? OP.globalSet : OP.localSet).u32(index);
  }

  /** Reads, changes and writes back one place of the memory. */
  #updateMemory(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const store = random.pick(STORES.filter((op) => !isFloat(op.type)));
    const load = random.pick(LOADS.filter((op) => op.type === store.type && op.align === store.align));
    const bases = this.#locals.flatMap((t, i) => t === "i32" && this.#writable[i]! ? [i] : []);
    const base = bases.length === 0 ? this.#newLocal("i32", true) : random.pick(bases);
    this.#expression("i32", depth - 1);
    this.#constant("i32", random.pick([0xff, 0xff8]));
    out.byte(0x71).byte(OP.localSet).u32(base);
    const offset = random.below(40);
    this.#get(base);
    this.#get(base);
    this.#access(load.code, load.align, random.chance(90) ? offset : offset + 1);
    random.chance(40) ? this.#leafConstant(store.type) : this.#expression(store.type, depth - 1);
    out.byte(random.pick(BINARY_OPS[store.type]!));
    this.#access(store.code, store.align, offset);
  }

  /** Locals of one type change places: what makes cycles of moves at the ends of loops. */
  #permute(): void {
    const random = this.#random;
    const type = random.pick(this.#types());
    const locals = random.shuffled(this.#locals.flatMap((t, i) => t === type && this.#writable[i]! ? [i] : [])).slice(
      0,
      6,
    );
    for (const local of locals) this.#get(local);
    const shift = random.below(locals.length || 1);
    locals.forEach((_, i) => this.#out.byte(OP.localSet).u32(locals[(i + shift) % locals.length]!));
    if (locals.length === 0) this.#out.byte(OP.nop);
  }

  /** Loads and stores of all widths by one base, near to and over each other, sometimes across the end of the memory. */
  #accessRun(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const bases = this.#locals.flatMap((t, i) => t === "i32" && this.#writable[i]! ? [i] : []);
    const base = bases.length === 0 || random.chance(10) ? this.#newLocal("i32", true) : random.pick(bases);
    const end = this.#plan.memory!.min * 65536;
    if (random.chance(12)) this.#constant("i32", end - random.between(0, 40));
    else {
      this.#expression("i32", depth - 1);
      this.#constant("i32", random.pick([0xff, 0xfff8]));
      out.byte(0x71);
    }
    out.byte(OP.localSet).u32(base);
    const near = random.pick([8, 16, 64]);
    for (let n = random.between(2, 6); n > 0 && this.#budget > 0; n--) {
      const offset = random.below(near);
      if (random.chance(50)) {
        const op = random.pick(STORES);
        this.#get(base);
        if (isFloat(op.type)) this.#canonical(op.type, depth - 2);
        else this.#expression(op.type, depth - 2);
        this.#access(op.code, op.align, offset);
      } else {
        const op = random.pick(LOADS);
        const targets = this.#locals.flatMap((t, i) => t === op.type && this.#writable[i]! && i !== base ? [i] : []);
        this.#get(base);
        this.#access(op.code, op.align, offset);
        if (targets.length > 0) out.byte(OP.localSet).u32(random.pick(targets));
        else out.byte(OP.drop);
      }
      if (random.chance(15)) this.#statement(depth - 2);
      this.#step();
    }
  }

  /** Takes `results` off the stack. */
  #consume(results: readonly TypeName[]): void {
    const stack = results.slice();
    while (stack.length > 0) {
      const type = stack.pop()!;
      if (stack.length > 0 && stack[stack.length - 1] === type && NUMBERS.includes(type) && this.#random.chance(40)) {
        this.#opcode({ i32: 0x6a, i64: 0x7d, f32: 0x92, f64: 0xa1 }[type as "i32"]);
        continue;
      }
      const locals = this.#locals.flatMap((t, i) => t === type && this.#writable[i]! ? [i] : []);
      if (locals.length > 0 && this.#random.chance(80)) {
        this.#out.byte(OP.localSet).u32(this.#random.pick(locals));
      } else this.#out.byte(OP.drop);
    }
    this.#impure++;
  }

  #blockType(params: readonly TypeName[], results: readonly TypeName[]): void {
    if (params.length === 0 && results.length === 0) this.#out.byte(0x40);
    else if (params.length === 0 && results.length === 1 && this.#random.chance(95)) this.#out.byte(TYPE[results[0]!]);
    else this.#out.s32(this.#plan.typeIndex({ params, results }));
  }

  #if(results: readonly TypeName[], depth: number): void {
    this.#impure++;
    this.#condition(depth - 1);
    this.#out.byte(OP.if);
    this.#blockType([], results);
    this.#labels.push({ types: results });
    this.#body(results, depth - 1);
    if (results.length > 0 || this.#random.chance(50)) {
      this.#out.byte(OP.else);
      this.#body(results, depth - 1);
    }
    this.#labels.pop();
    this.#out.byte(OP.end);
  }

  #block(results: readonly TypeName[], depth: number): void {
    this.#impure++;
    this.#out.byte(OP.block);
    this.#blockType([], results);
    this.#labels.push({ types: results });
    this.#body(results, depth - 1);
    this.#labels.pop();
    this.#out.byte(OP.end);
  }

  /** A block with parameters and any results, which go to locals. */
  #multiValueBlock(depth: number): void {
    if (!this.#has("multi-value")) return this.#block([], depth);
    const random = this.#random;
    const types = this.#types();
    const params = Array.from({ length: random.below(4) }, () => random.pick(types));
    const results = Array.from({ length: random.below(4) }, () => random.pick(types));
    for (const type of params) this.#expression(type, depth - 1);
    const conditional = random.chance(35);
    if (conditional) this.#condition(depth - 1);
    this.#impure++;
    this.#out.byte(conditional ? OP.if : OP.block);
    this.#blockType(params, results);
    this.#labels.push({ types: results });
    this.#consume(params);
    this.#body(results, depth - 1);
    if (conditional) {
      this.#out.byte(OP.else);
      if (params.join() !== results.join() || random.chance(60)) {
        this.#consume(params);
        this.#body(results, depth - 1);
      }
    }
    this.#labels.pop();
    this.#out.byte(OP.end);
    this.#consume(results);
  }

  /** Nested blocks with a br_table inside: what compilers make of a switch. */
  #switch(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const cases = random.between(1, 5);
    this.#impure++;
    for (let i = 0; i <= cases; i++) {
      out.byte(OP.block).byte(0x40);
      this.#labels.push({ types: [] });
    }
    this.#expression("i32", depth - 1);
    if (random.chance(60)) out.byte(0x41).s32(random.pick([3, 7])).byte(0x71);
    const entries = random.chance(10) ? random.between(20, 120) : random.below(12);
    out.byte(OP.brTable).u32(entries);
    for (let i = 0; i <= entries; i++) out.u32(random.below(cases + 1));
    for (let i = 0; i < cases; i++) {
      out.byte(OP.end);
      this.#labels.pop();
      if (random.chance(85)) this.#statement(depth - 1);
      if (random.chance(60)) out.byte(OP.br).u32(cases - 1 - i);
    }
    out.byte(OP.end);
    this.#labels.pop();
  }

  // ---- loops --------------------------------------------------------------------------------------------------------

  /** A loop that leaves `results`; its counter is a local of its own. */
  #loop(results: readonly TypeName[], depth: number): void {
    const random = this.#random;
    const most = Math.max(1, Math.min(24, Math.floor(3000 / this.#weight)));
    const trips = random.between(1, most);
    const wide = random.chance(25);
    const counter = this.#newLocal(wide ? "i64" : "i32", false);
    const down = random.chance(30);
    const step = random.pick([1, 1, 1, 2, 3, 4, 8]);
    const first = random.pick([0, 0, 0, 1, -5, 100, 0x7ffff000]);
    this.#impure++;
    this.#constant(wide ? "i64" : "i32", first);
    this.#out.byte(OP.localSet).u32(counter);
    this.#counters.push(counter);
    const outer = this.#weight;
    this.#weight *= trips + 1;
    const sign = down ? -1 : 1;
    if (random.chance(50)) {
      this.#headLoop(results, depth, { counter, wide, last: first + sign * step * trips, step: sign * step });
    } else this.#tailLoop(results, depth, { counter, wide, last: first + sign * step * trips, step: sign * step });
    this.#weight = outer;
    this.#counters.pop();
  }

  #advance({ counter, wide, step }: { counter: number; wide: boolean; step: number }): void {
    this.#get(counter);
    if (step < 0 && this.#random.chance(50)) {
      this.#constant(wide ? "i64" : "i32", -step);
      this.#out.byte(wide ? 0x7d : 0x6b);
    } else {
      this.#constant(wide ? "i64" : "i32", step);
      this.#out.byte(wide ? 0x7c : 0x6a);
    }
    this.#out.byte(OP.localSet).u32(counter);
  }

  /** Whether the counter has not reached `last` (or, negated, whether it has): by order, or by being different. */
  #compareCounter(
    { counter, wide, last, step }: { counter: number; wide: boolean; last: number; step: number },
    more: boolean,
  ) {
    const type = wide ? "i64" : "i32";
    this.#get(counter);
    this.#constant(type, last);
    // The counter runs exactly through `last`, so inequality is as good as order.
    const base = wide ? 0x51 : 0x46;
    const order = step > 0 ? (more ? 2 : 8) : (more ? 4 : 6); // lt_s, ge_s, gt_s, le_s
    this.#opcode(this.#random.chance(25) ? base + (more ? 1 : 0) : base + order);
  }

  /** Leaves at the top when the count is reached, so that anything inside may branch back. */
  #headLoop(
    results: readonly TypeName[],
    depth: number,
    count: { counter: number; wide: boolean; last: number; step: number },
  ) {
    const random = this.#random;
    const out = this.#out;
    const params = this.#has("multi-value") && random.chance(25)
      ? Array.from(
        { length: random.chance(20) ? random.between(4, 12) : random.between(1, 3) },
        () => random.pick(this.#types()),
      )
      : [];
    out.byte(OP.block);
    this.#blockType([], results);
    this.#labels.push({ types: results });
    for (const type of params) this.#expression(type, depth - 2);
    out.byte(OP.loop);
    this.#blockType(params, results);
    this.#labels.push({ types: params });
    this.#consume(params);
    this.#compareCounter(count, false);
    if (results.length === 0) out.byte(OP.brIf).u32(1);
    else {
      out.byte(OP.if).byte(0x40);
      this.#labels.push({ types: undefined });
      for (const type of results) this.#leaf(type);
      out.byte(OP.br).u32(2).byte(OP.end);
      this.#labels.pop();
    }
    this.#advance(count);
    const statements = random.between(1, 4);
    for (let i = 0; i < statements && this.#budget > 0; i++) this.#statement(depth - 1);
    if (random.chance(75)) {
      for (const type of params) this.#expression(type, depth - 2);
      out.byte(OP.br).u32(0);
    } else for (const type of results) this.#expression(type, depth - 2);
    out.byte(OP.end);
    this.#labels.pop();
    out.byte(OP.end);
    this.#labels.pop();
  }

  /** Tests at the bottom; nothing else branches back. */
  #tailLoop(
    results: readonly TypeName[],
    depth: number,
    count: { counter: number; wide: boolean; last: number; step: number },
  ) {
    const random = this.#random;
    const out = this.#out;
    out.byte(OP.loop);
    this.#blockType([], results);
    this.#labels.push({ types: undefined });
    const statements = random.between(1, 4);
    for (let i = 0; i < statements && this.#budget > 0; i++) this.#statement(depth - 1);
    this.#advance(count);
    this.#compareCounter(count, true);
    out.byte(OP.brIf).u32(0);
    for (const type of results) this.#expression(type, depth - 2);
    out.byte(OP.end);
    this.#labels.pop();
  }

  // ---- calls --------------------------------------------------------------------------------------------------------

  /** A call, direct or not, whose results match `wanted` (any when undefined); its results, or undefined if none was possible. */
  #call(depth: number, wanted: TypeName | undefined): readonly TypeName[] | undefined {
    const random = this.#random;
    const fits = (f: PlannedFunction) =>
      wanted === undefined || (f.signature.results.length >= 1 && f.signature.results[0] === wanted);
    const room = (COST_LIMIT - this.#cost) / this.#weight;
    const tables = this.#plan.tables.flatMap((t, i) => t.type === "funcref" ? [i] : []);
    if (!this.#self.tabled && tables.length > 0 && random.chance(35)) {
      const targets = this.#plan.functions.filter((f) => f.tabled && fits(f));
      const most = Math.max(0, ...this.#plan.functions.map((f) => f.tabled ? f.cost ?? Infinity : 0));
      if (targets.length > 0 && most < room) {
        const target = random.pick(targets);
        for (const type of target.signature.params) this.#expression(type, depth - 1);
        const table = random.pick(tables);
        this.#index(this.#plan.tables[table]!.min, depth - 1, table);
        this.#out.byte(OP.callIndirect).u32(this.#plan.typeIndex(target.signature)).u32(table);
        this.#cost += most * this.#weight;
        this.#impure++;
        return target.signature.results;
      }
    }
    const falling = this.#self.style === "falling" && this.#selfCalls === 0 && this.#weight === 1;
    const targets = this.#plan.functions.filter((f) =>
      fits(f) && (f === this.#self ? falling : f.cost !== undefined && f.cost < room)
    );
    if (targets.length === 0) return undefined;
    const target = random.pick(targets);
    this.#impure++;
    if (target === this.#self) this.#selfCalls++; // before the arguments: a second call would double the work at every level
    target.signature.params.forEach((type, i) => {
      if (target === this.#self && i === 0 && falling) {
        this.#get(0);
        this.#out.byte(0x41).s32(1).byte(0x6b);
      } else this.#expression(type, depth - 1);
    });
    this.#out.byte(OP.call).u32(target.index);
    if (target !== this.#self) this.#cost += target.cost! * this.#weight;
    return target.signature.results;
  }

  // ---- memory and tables --------------------------------------------------------------------------------------------

  /** An address and the static offset that goes with it. */
  #address(depth: number, width: number): { offset: number } {
    const random = this.#random;
    const out = this.#out;
    const memory = this.#plan.memory!;
    const end = memory.min * 65536;
    switch (random.weighted([30, 12, 25, 6, 1, 1, 10, 6, 5, 8])) {
      case 0: { // masked
        this.#expression("i32", depth - 1);
        out.byte(0x41).s32(random.pick([0xff, 0xff8, 0x7ff0, 0xfff])).byte(0x71);
        return { offset: random.pick([0, 0, 4, 8, 16, 1000, 4095]) };
      }
      case 1: { // just inside the end
        const offset = random.pick([0, 1, 8, 100, 65528]);
        const address = end - width - offset - random.below(4);
        if (address < 0) break;
        this.#constant("i32", address);
        return { offset };
      }
      case 2: { // by a loop counter
        const counters = this.#counters.filter((c) => this.#locals[c] === "i32");
        if (counters.length === 0) break;
        this.#get(random.pick(counters));
        out.byte(0x41).s32(random.pick([0xff, 0xfff])).byte(0x71);
        const shift = random.below(4);
        if (random.chance(70)) out.byte(0x41).s32(shift).byte(0x74);
        if (random.chance(40)) out.byte(0x41).s32(random.between(0, 64)).byte(0x6a);
        return { offset: random.pick([0, 0, 4, 8, 256]) };
      }
      case 3: { // unsigned edge: address + offset must not wrap around at 2³²
        this.#constant("i32", random.below(64));
        return { offset: random.pick([0, 1, 65528 - 64]) };
      }
      case 4: // anything
        this.#expression("i32", depth - 1);
        return { offset: random.below(16) };
      case 9: { // base + index × scale
        this.#expression("i32", depth - 2);
        out.byte(0x41).s32(random.pick([0xff, 0xfff])).byte(0x71);
        this.#expression("i32", depth - 2);
        out.byte(0x41).s32(random.pick([0xf, 0xff])).byte(0x71);
        if (random.chance(30)) out.byte(0x41).s32(random.pick([3, 5, 8, 12])).byte(0x6c);
        else out.byte(0x41).s32(random.below(5)).byte(0x74);
        out.byte(0x6a);
        return { offset: random.pick([0, 0, 4, 100]) };
      }
      case 8: // just inside the end as it is now
        if (memory.min === 0) break;
        out.byte(OP.memorySize).byte(0).byte(0x41).s32(16).byte(0x74);
        out.byte(0x41).s32(width + random.below(20)).byte(0x6b);
        return { offset: random.pick([0, 0, 0, 1]) };
      case 7: { // a sum that wraps around at 2³², so is no sum of 64 bits
        const part = random.pick([-4, -64, 0x7fffffff, -0x80000000, random.i32()]);
        this.#expression("i32", depth - 1);
        out.byte(0x41).s32(random.pick([0xff, 0xff8])).byte(0x71);
        this.#constant("i32", part);
        out.byte(0x6b);
        if (random.chance(30) && depth > 1) {
          const local = this.#newLocal("i32", true);
          out.byte(OP.localSet).u32(local);
          this.#impure++;
          this.#get(local);
        }
        this.#constant("i32", part);
        out.byte(0x6a);
        return { offset: random.pick([0, 4, 16]) };
      }
      case 5: // far outside
        this.#expression("i32", depth - 1);
        return { offset: random.pick([0xffffffff, 0x80000000, 0x7fffffff, 0xfffffff8, end - 1, end]) };
    }
    const locals = this.#locals.flatMap((t, i) => t === "i32" ? [i] : []);
    if (locals.length > 0) this.#get(random.pick(locals));
    else this.#constant("i32", random.below(1000));
    out.byte(0x41).s32(0x3ff8).byte(0x71);
    return { offset: random.pick([0, 0, 0, 1, 2, 4, 8, 12, 64]) };
  }

  #access(code: number, align: number, offset: number): void {
    this.#out.byte(code).u32(this.#random.chance(85) ? align : this.#random.below(align + 1)).u32(offset);
  }

  #store(depth: number): void {
    const random = this.#random;
    const op = random.pick(STORES);
    const { offset } = this.#address(depth, 1 << op.align);
    if (isFloat(op.type)) {
      if (random.chance(15)) { // bits of a NaN in memory survive being copied
        const load = LOADS.find((l) => l.type === op.type)!;
        const from = this.#address(depth, 8);
        this.#access(load.code, load.align, from.offset);
      } else this.#canonical(op.type, depth - 1);
    } else this.#expression(op.type, depth - 1);
    this.#access(op.code, op.align, offset);
  }

  /** An index or length that is mostly below `limit`. */
  #index(limit: number, depth: number, table = -1): void {
    const random = this.#random;
    if (table >= 0 && this.#has("reference-types") && random.chance(15)) { // the last one as it is now
      this.#out.byte(0xfc).u32(16).u32(table);
      this.#constant("i32", random.chance(90) ? 1 : random.below(3));
      return this.#opcode(0x6b);
    }
    if (limit > 0 && random.chance(50)) return this.#constant("i32", random.below(limit));
    if (limit > 0 && random.chance(85)) {
      this.#expression("i32", depth - 1);
      this.#constant("i32", limit);
      this.#opcode(0x70); // rem_u
      return;
    }
    if (random.chance(70)) return this.#constant("i32", limit + random.between(-1, 1));
    this.#expression("i32", depth - 1);
  }

  #bulkMemory(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const place = () => {
      this.#expression("i32", depth - 2);
      out.byte(0x41).s32(random.pick([0xff, 0xffff, 0xfff])).byte(0x71);
    };
    const length = () => {
      if (random.chance(60)) this.#constant("i32", random.pick([0, 1, 2, 3, 4, 7, 8, 16, 17, 31, 64, 100]));
      else {
        this.#expression("i32", depth - 2);
        out.byte(0x41).s32(random.pick([0xf, 0xff])).byte(0x71);
      }
    };
    const segments = this.#plan.dataLengths;
    this.#cost += 20 * this.#weight;
    switch (random.below(segments.length > 0 ? 4 : 2)) {
      case 0:
        place();
        place();
        length();
        out.byte(0xfc).u32(10).byte(0).byte(0);
        return;
      case 1:
        place();
        this.#expression("i32", depth - 2);
        length();
        out.byte(0xfc).u32(11).byte(0);
        return;
      case 2: {
        const segment = random.below(segments.length);
        place();
        this.#index(segments[segment]!, depth - 2);
        this.#constant("i32", random.below(4));
        out.byte(0xfc).u32(8).u32(segment).byte(0);
        return;
      }
      default:
        if (random.chance(20)) out.byte(0xfc).u32(9).u32(random.below(segments.length));
        else out.byte(OP.nop);
    }
  }

  #tableStatement(depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const { tables, elems } = this.#plan;
    const table = random.below(tables.length);
    const { type, min } = tables[table]!;
    const few = () => this.#constant("i32", random.below(4));
    this.#cost += 20 * this.#weight;
    switch (random.below(6)) {
      case 0:
      case 1:
        this.#index(min, depth - 1, table);
        this.#expression(type, depth - 1);
        out.byte(OP.tableSet).u32(table);
        return;
      case 2:
        this.#index(min, depth - 1, table);
        this.#expression(type, depth - 1);
        few();
        out.byte(0xfc).u32(17).u32(table);
        return;
      case 3: {
        const sources = tables.flatMap((t, i) => t.type === type ? [i] : []);
        const source = random.pick(sources);
        this.#index(min, depth - 1, table);
        this.#index(tables[source]!.min, depth - 1);
        few();
        out.byte(0xfc).u32(14).u32(table).u32(source);
        return;
      }
      case 4: {
        const fitting = elems.flatMap((e, i) => e.type === type ? [i] : []);
        if (fitting.length === 0) break;
        const elem = random.pick(fitting);
        this.#index(min, depth - 1, table);
        this.#index(elems[elem]!.length, depth - 1);
        few();
        out.byte(0xfc).u32(12).u32(elem).u32(table);
        return;
      }
      default:
        if (elems.length > 0 && random.chance(20)) {
          out.byte(0xfc).u32(13).u32(random.below(elems.length));
          return;
        }
    }
    this.#expression(type, depth - 1);
    few();
    out.byte(0xfc).u32(15).u32(table).byte(OP.drop);
  }

  // ---- expressions --------------------------------------------------------------------------------------------------

  /** A condition: an i32, often a comparison. */
  #condition(depth: number): void {
    const random = this.#random;
    if (depth > 0 && random.chance(70)) {
      const op = random.pick(NUMERIC_OPS.filter((o) => o.code <= 0x66));
      return this.#numeric(op, depth);
    }
    this.#expression("i32", depth);
  }

  /** Leaves one value of `type`. */
  #expression(type: TypeName, depth: number): void {
    this.#step();
    const random = this.#random;
    if (depth <= 0 || this.#budget <= 0) return this.#leaf(type);
    const start = this.#out.length;
    const impure = this.#impure;
    if (isReference(type)) this.#reference(type, depth);
    else this.#number(type, depth);
    const length = this.#out.length - start;
    if (impure === this.#impure && length > 4 && length < 60 && random.chance(30)) {
      this.#snippets.push({ type, code: this.#out.taken(start) });
    }
  }

  #number(type: TypeName, depth: number): void {
    const random = this.#random;
    const out = this.#out;
    switch (
      random.weighted([
        50, // numeric
        this.#plan.memory === undefined ? 0 : 16,
        14, // leaf
        4, // tee
        3, // block
        4, // if
        this.#weight < 500 ? 2 : 0,
        5, // select
        5, // call
        2, // br_if with values
        5, // repeated expression
        3, // odds and ends
      ])
    ) {
      case 0:
        return this.#numeric(random.pick(OPS_BY_RESULT[type]!), depth);
      case 1: {
        const op = random.pick(LOADS.filter((l) => l.type === type));
        const { offset } = this.#address(depth, 1 << op.align);
        return this.#access(op.code, op.align, offset);
      }
      case 3: {
        const locals = this.#locals.flatMap((t, i) => t === type && this.#writable[i]! ? [i] : []);
        if (locals.length === 0) break;
        this.#expression(type, depth - 1);
        this.#impure++;
        out.byte(OP.localTee).u32(random.pick(locals));
        return;
      }
      case 4:
        return this.#block([type], depth);
      case 5:
        return this.#if([type], depth);
      case 6:
        return this.#loop([type], depth);
      case 7:
        return this.#select(type, depth);
      case 8: {
        const results = this.#call(depth, type);
        if (results === undefined) break;
        this.#consume(results.slice(1));
        return;
      }
      case 9: {
        const labels = this.#branchTargets().filter((l) => this.#labelTypes(l).join() === type);
        if (labels.length === 0) break;
        this.#expression(type, depth - 1);
        this.#condition(depth - 1);
        this.#impure++;
        out.byte(OP.brIf).u32(random.pick(labels));
        return;
      }
      case 10: {
        const fitting = this.#snippets.filter((s) => s.type === type);
        if (fitting.length === 0) break;
        out.bytes(random.pick(fitting).code);
        this.#cost += 20 * this.#weight;
        return;
      }
      case 11:
        if (type === "i32" && this.#odd(depth)) return;
    }
    this.#leaf(type);
  }

  #select(type: TypeName, depth: number): void {
    this.#expression(type, depth - 1);
    this.#expression(type, depth - 1);
    this.#condition(depth - 1);
    if (isReference(type) || (this.#has("reference-types") && this.#random.chance(20))) {
      this.#out.byte(OP.selectTyped).u32(1).byte(TYPE[type]);
    } else this.#out.byte(OP.select);
  }

  /** Sizes, growth, null tests; false if there was nothing of the kind. */
  #odd(depth: number): boolean {
    const random = this.#random;
    const out = this.#out;
    const { memory, tables } = this.#plan;
    if (memory !== undefined && random.chance(40)) {
      if (random.chance(60)) out.byte(OP.memorySize).byte(0);
      else {
        this.#constant("i32", random.weighted([30, 30, 5, 5]) === 3 ? random.i32() : random.below(3));
        out.byte(OP.memoryGrow).byte(0);
      }
    } else if (this.#has("reference-types") && tables.length > 0 && random.chance(50)) {
      const table = random.below(tables.length);
      if (random.chance(50)) out.byte(0xfc).u32(16).u32(table);
      else {
        this.#expression(tables[table]!.type, depth - 1);
        this.#constant("i32", random.below(4));
        out.byte(0xfc).u32(15).u32(table);
        this.#cost += 20 * this.#weight;
      }
    } else if (this.#has("reference-types")) {
      this.#expression(random.chance(50) ? "funcref" : "externref", depth - 1);
      out.byte(OP.refIsNull);
      return true;
    } else return false;
    this.#impure++;
    return true;
  }

  #reference(type: TypeName, depth: number): void {
    const random = this.#random;
    const out = this.#out;
    const tables = this.#plan.tables.flatMap((t, i) => t.type === type ? [i] : []);
    switch (random.below(5)) {
      case 0:
        if (tables.length === 0) break;
        {
          const table = random.pick(tables);
          this.#index(this.#plan.tables[table]!.min, depth - 1, table);
          out.byte(OP.tableGet).u32(table);
        }
        return;
      case 1:
        return this.#select(type, depth);
      case 2: {
        const results = this.#call(depth, type);
        if (results === undefined) break;
        this.#consume(results.slice(1));
        return;
      }
      case 3:
        if (random.chance(30)) return this.#if([type], depth);
    }
    this.#leaf(type);
  }

  #opcode(code: number): void {
    if (code >= 0xfc00) this.#out.byte(0xfc).u32(code - 0xfc00);
    else this.#out.byte(code);
  }

  #numeric(op: NumericOp, depth: number): void {
    const random = this.#random;
    let { code } = op;
    if (isTruncation(code) && !random.chance(5)) {
      if (this.#has("nontrapping-float-to-int-conversion")) code = saturating(code);
      else return this.#leaf(op.result);
    } else if (code >= 0xfc00 && !this.#has("nontrapping-float-to-int-conversion")) return this.#leaf(op.result);
    else if (code >= 0xc0 && code < 0xfc00 && !this.#has("sign-extension-ops")) return this.#leaf(op.result);
    const last = op.params.length - 1;
    op.params.forEach((type, i) => {
      if (i === last && showsNaN(code)) return this.#canonical(type, depth - 1);
      if (i === last && isDivision(code)) return this.#divisor(type, depth - 1);
      if (i === 1 && !isFloat(type) && random.chance(30)) return this.#leafConstant(type);
      this.#expression(type, depth - 1);
    });
    this.#opcode(code);
  }

  /** A divisor: mostly a constant or odd, so that few divide by zero. */
  #divisor(type: TypeName, depth: number): void {
    const random = this.#random;
    if (random.chance(60)) {
      if (type === "i32") return this.#constant(type, random.i32() || 7);
      this.#out.byte(0x42).s64(random.i64() || 7n);
      return;
    }
    this.#expression(type, depth);
    if (random.chance(95)) {
      this.#constant(type, 1);
      this.#opcode(type === "i32" ? 0x72 : 0x84);
    }
  }

  /** A float whose NaN, if it is one, is the canonical one. */
  #canonical(type: TypeName, depth: number): void {
    const out = this.#out;
    this.#expression(type, depth);
    const scratch = this.#scratch[type] ??= this.#newLocal(type, false);
    out.byte(OP.localTee).u32(scratch);
    if (type === "f32") out.byte(0x43).bytes([0, 0, 0xc0, 0x7f]);
    else out.byte(0x44).bytes([0, 0, 0, 0, 0, 0, 0xf8, 0x7f]);
    this.#get(scratch);
    this.#get(scratch);
    out.byte(type === "f32" ? 0x5b : 0x61).byte(OP.select);
  }

  #constant(type: TypeName, value: number): void {
    if (type === "i32") this.#out.byte(0x41).s32(value);
    else this.#out.byte(0x42).s64(BigInt(value));
  }

  #leafConstant(type: TypeName): void {
    const random = this.#random;
    switch (type) {
      case "i32":
        this.#out.byte(0x41).s32(random.i32());
        return;
      case "i64":
        this.#out.byte(0x42).s64(random.i64());
        return;
      case "f32":
        this.#out.byte(0x43).f32(random.float(true));
        return;
      case "f64":
        this.#out.byte(0x44).f64(random.float(false));
        return;
      case "funcref":
        if (this.#plan.referable.length > 0 && random.chance(70)) {
          this.#out.byte(OP.refFunc).u32(random.pick(this.#plan.referable));
          return;
        }
        this.#out.byte(OP.refNull).byte(TYPE.funcref);
        return;
      case "externref":
        this.#out.byte(OP.refNull).byte(TYPE.externref);
    }
  }

  #leaf(type: TypeName): void {
    const random = this.#random;
    if (random.chance(12)) {
      const globals = this.#plan.globals.flatMap((g, i) => g.type === type ? [i] : []);
      if (globals.length > 0) {
        this.#out.byte(OP.globalGet).u32(random.pick(globals));
        return;
      }
    }
    const scratch = this.#scratch[type];
    const locals = this.#locals.flatMap((t, i) => t === type && i !== scratch ? [i] : []);
    if (locals.length > 0 && random.chance(75)) return this.#get(random.pick(locals));
    this.#leafConstant(type);
  }
}
