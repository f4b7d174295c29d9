/**
 * Random programs over objects with descriptors, and a model of them. In: a seed. Out: a module in text form whose
 * export `run` executes random statements, and the outcome that the model predicts: a number, or the code of a trap.
 *
 * There are four types in a chain: the first has no descriptor, the others have. Objects and descriptors are in locals
 * of every static type, so that casts are decided at compile time, by tests, and by comparisons of descriptors.
 *
 * A comparison runs programs in both tiers with guard pages and explicit bounds, without optimizations, and with bodies
 * that are compiled when they are called and replaced by optimized code at calls or in loops, with frequent collections
 * in some. It throws where an outcome is not the model's or the machine code of a processor is not proven.
 */

import assert from "node:assert/strict";
import { OPTIMIZING_ARM64 } from "../../engine/backend_arm64/optimizing_target.ts";
import { compileModule, stubContext } from "../../engine/compile/compile.ts";
import type { CompileOptions } from "../../engine/compile/compile_options.ts";
import { verifyCompiled } from "../../engine/compile/verify_module.ts";
import { Engine, NewEngine, OPTIMIZATION_ROWS } from "../../engine/mod.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";

/** A number, or the code of a trap. */
type Outcome = number | string;

/** Types of objects from the root down; `p` has no descriptor. */
const KINDS = ["p", "a", "b", "c"] as const;
const DESCRIBED = ["a", "b", "c"] as const;
type Kind = (typeof KINDS)[number];
type Described = (typeof DESCRIBED)[number];
/** Static types of locals with objects. */
const STATIC = ["any", "p", "a", "b", "c"] as const;
type Static = (typeof STATIC)[number];

const LOCALS_OF_KIND = 3;

const TYPES = `
  (rec
    (type $p (sub (struct (field $v (mut i32)))))
    (type $a (sub $p (descriptor $ad) (struct (field $v (mut i32)) (field $w i64))))
    (type $ad (sub (describes $a) (struct (field $t i32))))
    (type $b (sub $a (descriptor $bd) (struct (field $v (mut i32)) (field $w i64) (field $x (mut anyref)))))
    (type $bd (sub $ad (describes $b) (struct (field $t i32) (field $u f64))))
    (type $c (sub final $b (descriptor $cd)
      (struct (field $v (mut i32)) (field $w i64) (field $x (mut anyref)) (field $y i8))))
    (type $cd (sub final $bd (describes $c) (struct (field $t i32) (field $u f64) (field $s (ref null $c))))))`;

interface Descriptor {
  readonly kind: Described;
  readonly tag: number;
}

interface Instance {
  readonly kind: Kind;
  readonly descriptor: Descriptor | undefined;
  value: number;
}

/** A small integer, which is an object without type. */
interface Small {
  readonly kind: "i31";
}

type Value = Instance | Small | undefined;

/** The locals of a run. */
interface State {
  readonly objects: Map<string, Value>;
  readonly descriptors: Map<string, Descriptor | undefined>;
  sum: number;
}

interface Statement {
  readonly text: string;
  readonly run: (state: State) => void;
}

class Trapped extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

function trap(code: string): never {
  throw new Trapped(code);
}

/** The position of a kind in the chain of subtypes; −1 for other values. */
function depthOf(kind: string): number {
  return (KINDS as readonly string[]).indexOf(kind);
}

function add(state: State, value: number): void {
  state.sum = (Math.imul(state.sum, 31) + value) | 0;
}

const ADD = (text: string) => `(local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31)) ${text}))`;

function staticType(kind: Static): string {
  return kind === "any" ? "anyref" : `(ref null $${kind})`;
}

class RandomProgram {
  #state: number;
  readonly #statements: readonly Statement[];

  constructor(seed: number) {
    this.#state = seed * 2654435761 >>> 0;
    const first = DESCRIBED.flatMap((kind) =>
      Array.from({ length: LOCALS_OF_KIND }, (_, k) => this.#newDescriptor(kind, `${kind}d${k}`))
    );
    if (this.#below(6) === 0) first.shift();
    for (let k = 0; k < 12; k++) first.push(this.#newObject());
    const rest = Array.from({ length: 10 + this.#below(20) }, () => this.#statement());
    this.#statements = [...first, ...rest];
  }

  text(): string {
    const locals = STATIC.flatMap((kind) =>
      Array.from({ length: LOCALS_OF_KIND }, (_, k) => `(local $${kind}${k} ${staticType(kind)})`)
    );
    for (const kind of DESCRIBED) {
      for (let k = 0; k < LOCALS_OF_KIND; k++) locals.push(`(local $${kind}d${k} (ref null (exact $${kind}d)))`);
    }
    return `(module ${TYPES}
      (func (export "run") (param $sum i32) (result i32) ${locals.join(" ")}
        (local $times i32)
        (local.set $times (i32.const 2))
        (loop $again
          ${this.#statements.map(({ text }) => text).join("\n")}
          (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
        (local.get $sum)))`;
  }

  /** What the program does, started with `sum`. */
  run(sum: number): Outcome {
    const state: State = { objects: new Map(), descriptors: new Map(), sum };
    try {
      for (let times = 0; times < 2; times++) for (const { run } of this.#statements) run(state);
    } catch (error) {
      if (error instanceof Trapped) return error.code;
      throw error;
    }
    return state.sum;
  }

  #below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * n);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#below(items.length)];
  }

  #local(kind: string): string {
    return `${kind}${this.#below(LOCALS_OF_KIND)}`;
  }

  /** A static type of which values of `kind` are. */
  #above(kind: Kind): Static {
    return this.#pick(STATIC.slice(0, depthOf(kind) + 2));
  }

  #statement(): Statement {
    return this.#pick([
      () => this.#newDescriptor(),
      () => this.#newObject(),
      () => this.#newObject(),
      () => this.#newSmall(),
      () => this.#cast(),
      () => this.#castBranch(),
      () => this.#castBranch(),
      () => this.#test(),
      () => this.#getDescriptor(),
      () => this.#access(),
    ])();
  }

  #newDescriptor(kind: Described = this.#pick(DESCRIBED), to: string = this.#local(`${kind}d`)): Statement {
    const tag = this.#below(1000);
    const rest = { a: "", b: "(f64.const 1)", c: `(f64.const 2) (local.get $${this.#local("c")})` }[kind];
    return {
      text: `(local.set $${to} (struct.new $${kind}d (i32.const ${tag}) ${rest}))`,
      run: ({ descriptors }) => descriptors.set(to, { kind, tag }),
    };
  }

  #newObject(): Statement {
    const kind = this.#pick(KINDS);
    const to = this.#local(this.#above(kind));
    const value = this.#below(100);
    const fields = {
      p: "",
      a: "(i64.const 5)",
      b: `(i64.const 6) (local.get $${this.#local("any")})`,
      c: `(i64.const 7) (local.get $${this.#local("b")}) (i32.const 3)`,
    }[kind];
    if (kind === "p") {
      return {
        text: `(local.set $${to} (struct.new $p (i32.const ${value})))`,
        run: ({ objects }) => objects.set(to, { kind, descriptor: undefined, value }),
      };
    }
    const from = this.#local(`${kind}d`);
    const isDefault = this.#below(4) === 0;
    const make = isDefault
      ? `(struct.new_default_desc $${kind} (local.get $${from}))`
      : `(struct.new_desc $${kind} (i32.const ${value}) ${fields} (local.get $${from}))`;
    return {
      text: `(local.set $${to} ${make})`,
      run: ({ objects, descriptors }) => {
        const descriptor = descriptors.get(from) ?? trap("null-descriptor");
        objects.set(to, { kind, descriptor, value: isDefault ? 0 : value });
      },
    };
  }

  #newSmall(): Statement {
    const to = this.#local("any");
    return {
      text: `(local.set $${to} (ref.i31 (i32.const 1)))`,
      run: ({ objects }) => objects.set(to, { kind: "i31" }),
    };
  }

  /** A cast target, a descriptor for it, and whether a value passes; traps if the descriptor is null. */
  #target() {
    const kind = this.#pick(DESCRIBED);
    const exact = this.#below(2) === 0;
    const nullable = this.#below(2) === 0;
    const owner = exact ? kind : this.#pick(DESCRIBED.slice(DESCRIBED.indexOf(kind)));
    const descriptor = this.#local(`${owner}d`);
    return {
      kind,
      type: `(ref ${nullable ? "null " : ""}${exact ? `(exact $${kind})` : `$${kind}`})`,
      descriptor,
      passes: (state: State, value: Value): boolean => {
        const wanted = state.descriptors.get(descriptor) ?? trap("null-descriptor");
        if (value === undefined) return nullable;
        return value.kind !== "i31" && value.descriptor === wanted;
      },
    };
  }

  #cast(): Statement {
    const { kind, type, descriptor, passes } = this.#target();
    const from = this.#local(this.#pick(STATIC));
    const to = this.#local(this.#above(kind));
    const text = `(local.set $${to} (ref.cast_desc_eq ${type} (local.get $${from}) (local.get $${descriptor})))`;
    // Most casts succeed, or programs would end soon.
    const isGuarded = this.#below(12) > 0;
    const guarded = `(if (ref.test (ref $${kind}) (local.get $${from})) (then
      (if (ref.eq (ref.get_desc $${kind} (ref.cast (ref $${kind}) (local.get $${from}))) (local.get $${descriptor}))
        (then ${text}))))`;
    return {
      text: isGuarded ? guarded : text,
      run: (state) => {
        const value = state.objects.get(from);
        if (isGuarded) {
          if (value === undefined || value.kind === "i31" || depthOf(value.kind) < depthOf(kind)) return;
          if (value.descriptor !== state.descriptors.get(descriptor)) return;
        }
        if (!passes(state, value)) trap("descriptor-cast");
        state.objects.set(to, value);
      },
    };
  }

  #castBranch(): Statement {
    const { type, descriptor, passes } = this.#target();
    const source = this.#pick(STATIC);
    const from = this.#local(source);
    const onFail = this.#below(2) === 0;
    const word = onFail ? "br_on_cast_desc_eq_fail" : "br_on_cast_desc_eq";
    const number = this.#below(50);
    return {
      text: `(block $end
        (block $taken (result anyref)
          (drop (${word} $taken ${staticType(source)} ${type} (local.get $${from}) (local.get $${descriptor})))
          ${ADD(`(i32.const ${number})`)}
          (br $end))
        (drop)
        ${ADD(`(i32.const ${number + 1})`)})`,
      run: (state) => add(state, passes(state, state.objects.get(from)) !== onFail ? number + 1 : number),
    };
  }

  #test(): Statement {
    const kind = this.#pick(KINDS);
    const from = this.#local(this.#pick(STATIC));
    const exact = this.#below(3) > 0;
    const nullable = this.#below(3) === 0;
    const type = `(ref ${nullable ? "null " : ""}${exact ? `(exact $${kind})` : `$${kind}`})`;
    const isOfType = (value: Value) => {
      if (value === undefined) return nullable;
      const depth = depthOf(value.kind);
      return depth >= 0 && (exact ? value.kind === kind : depth >= depthOf(kind));
    };
    if (this.#below(2) === 0) {
      return {
        text: ADD(`(ref.test ${type} (local.get $${from}))`),
        run: (state) => add(state, Number(isOfType(state.objects.get(from)))),
      };
    }
    const to = this.#local(this.#above(kind));
    return {
      text: `(if (ref.test ${type} (local.get $${from}))
        (then (local.set $${to} (ref.cast ${type} (local.get $${from})))))`,
      run: ({ objects }) => {
        if (isOfType(objects.get(from))) objects.set(to, objects.get(from));
      },
    };
  }

  /** The descriptor of an object, compared with another, and its tag. */
  #getDescriptor(): Statement {
    const kind = this.#pick(DESCRIBED);
    const from = this.#local(kind);
    const other = this.#local(`${this.#pick(DESCRIBED)}d`);
    return {
      text: `(if (ref.is_null (local.get $${from})) (then) (else
        ${ADD(`(struct.get $ad $t (ref.get_desc $${kind} (local.get $${from})))`)}
        ${ADD(`(ref.eq (ref.get_desc $${kind} (local.get $${from})) (local.get $${other}))`)}))`,
      run: (state) => {
        const value = state.objects.get(from) as Instance | undefined;
        if (value === undefined) return;
        add(state, value.descriptor!.tag);
        add(state, Number(value.descriptor === state.descriptors.get(other)));
      },
    };
  }

  #access(): Statement {
    const kind = this.#pick(KINDS);
    const from = this.#local(kind);
    const value = this.#below(100);
    return {
      text: `(if (ref.is_null (local.get $${from})) (then) (else
        ${ADD(`(struct.get $${kind} $v (local.get $${from}))`)}
        (struct.set $${kind} $v (local.get $${from}) (i32.const ${value}))))`,
      run: (state) => {
        const object = state.objects.get(from) as Instance | undefined;
        if (object === undefined) return;
        add(state, object.value);
        object.value = value;
      },
    };
  }
}

/** The module of the program of `seed`, as text. */
export function descriptorProgram(seed: number): string {
  return new RandomProgram(seed).text();
}

const FEATURES = { "custom-descriptors": true } as const;

function outcomeOf(action: () => unknown): Outcome {
  try {
    return Number(action());
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

/** Fails unless the verifier proves the code of the module for arm64. */
function proveForArm64(text: string, tier: "baseline" | "optimizing", explicitBounds: boolean): void {
  const options: CompileOptions = {
    target: OPTIMIZING_ARM64,
    tier,
    features: featureSet(FEATURES),
    optimizations: optimizationSet(),
    settings: codeSettings({ explicitBounds }),
    cpu: new Set<string>(),
  };
  const code = compileModule(NewEngine({ features: FEATURES }).parse(text), options);
  if (tier === "baseline") assert.deepEqual(code.statistics, {});
  assert.deepEqual(verifyCompiled(code, options, stubContext(code.valid, options)), []);
}

export class DescriptorComparison {
  /** Numbers of runs by what ended them: "value", or the code of a trap. */
  readonly ends: Map<string, number> = new Map();
  readonly #engines: readonly Engine[] = [
    NewEngine({ features: FEATURES, bounds: "guard", verify: "code" }),
    NewEngine({ features: FEATURES, bounds: "explicit", verify: "code" }),
    NewEngine({ features: FEATURES, tier: "baseline", bounds: "guard", verify: "code" }),
    NewEngine({ features: FEATURES, tier: "baseline", bounds: "explicit", verify: "code" }),
    NewEngine({
      features: FEATURES,
      optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false])),
    }),
    new Engine({ features: FEATURES, tier: "auto", tierUpCalls: 1, lazyFrom: 0 }),
    new Engine({ features: FEATURES, tier: "auto", bounds: "explicit", tierUpIterations: 1 }),
  ];
  readonly #heaps = this.#engines.map((engine) => engine.compile("(module)").instantiate().internal.store.heap);

  /** Compares the program of `seed` with the model. */
  compare(seed: number): void {
    const program = new RandomProgram(seed);
    const text = program.text();
    try {
      for (const [k, engine] of this.#engines.entries()) {
        const instance = engine.compile(text).instantiate();
        this.#heaps[k].stress(k % 2 === 0 ? 1 + seed % 3 : 0);
        for (const start of [0, 1, 2]) {
          const expected = program.run(start);
          assert.equal(outcomeOf(() => instance.call({}, "run", start)), expected, `seed ${seed}, run(${start}), ${k}`);
          const kind = typeof expected === "number" ? "value" : expected;
          this.ends.set(kind, (this.ends.get(kind) ?? 0) + 1);
        }
        instance.close();
      }
    } finally {
      for (const heap of this.#heaps) heap.stress(0);
    }
    for (const tier of ["baseline", "optimizing"] as const) proveForArm64(text, tier, seed % 2 === 0);
  }
}
