/**
 * Random programs of stack switching beside a model in JavaScript's generators: functions suspend with several tags,
 * resume, switch, throw, catch, and keep continuations in tables, from which others resume them, also twice. In: a seed
 * and an engine. Out: what ended the program's runs. Invariant: results, the log of all handled values and the message
 * of a trap are those of the model.
 */
import assert from "node:assert/strict";
import { type Engine, NewEngine, OPTIMIZATION_ROWS, TrapError, WasmException } from "../../engine/mod.ts";

const FUNCTIONS = 6;
const TAGS = 3;
const SLOTS = 3;

/** What happens to a computation that has suspended. */
type Then = "again" | "drop" | "throw" | "keep";

/** A statement; all change the accumulator. */
type Statement =
  | { readonly kind: "mix"; readonly value: number }
  | { readonly kind: "call"; readonly callee: number }
  | { readonly kind: "suspend"; readonly tag: number }
  | { readonly kind: "throw"; readonly mask: number }
  | { readonly kind: "try"; readonly body: readonly Statement[] }
  /** Runs a function (or, below 0, the continuation in a slot) with handlers of tags. */
  | {
    readonly kind: "run";
    readonly source: number;
    readonly tags: readonly number[];
    readonly then: Then;
    readonly slot: number;
  }
  /** Begins a function that switches. */
  | { readonly kind: "peers"; readonly callee: number; readonly tags: readonly number[] }
  /** Only in functions that switch: to a new computation of `callee`, or to the one that it received last. */
  | { readonly kind: "switch"; readonly callee: number };

interface Program {
  readonly functions: readonly (readonly Statement[])[];
  readonly peers: readonly (readonly Statement[])[];
}

class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor(this.#state / 2 ** 32 * n);
  }
}

/** A program whose functions call and run only those with larger numbers. */
function makeProgram(random: Random): Program {
  const subset = () => Array.from({ length: TAGS }, (_, tag) => tag).filter(() => random.below(3) > 0);
  const statement = (index: number, isPeer: boolean, depth: number): Statement => {
    const hasCallee = index + 1 < FUNCTIONS;
    const callee = index + 1 + (hasCallee ? random.below(FUNCTIONS - index - 1) : 0);
    switch (random.below(isPeer ? 12 : 10)) {
      case 0:
        return { kind: "mix", value: random.below(100) };
      case 1:
        return hasCallee ? { kind: "call", callee } : { kind: "mix", value: 5 };
      case 2:
      case 3:
        return { kind: "suspend", tag: random.below(TAGS) };
      case 4:
        return { kind: "throw", mask: [3, 7, 15][random.below(3)] };
      case 5:
        if (depth > 1) return { kind: "mix", value: 7 };
        return { kind: "try", body: statements(index, isPeer, depth + 1, 1 + random.below(3)) };
      case 6:
      case 7:
      case 8: {
        const then = (["again", "again", "drop", "throw", "keep"] as const)[random.below(5)];
        const source = hasCallee && random.below(3) > 0 ? callee : -1 - random.below(SLOTS);
        return { kind: "run", source, tags: subset(), then, slot: random.below(SLOTS) };
      }
      case 9:
        return hasCallee ? { kind: "peers", callee, tags: subset() } : { kind: "mix", value: 9 };
      default:
        return { kind: "switch", callee };
    }
  };
  const statements = (index: number, isPeer: boolean, depth: number, count: number): Statement[] =>
    Array.from({ length: count }, () => statement(index, isPeer, depth));
  const bodies = (isPeer: boolean) =>
    Array.from({ length: FUNCTIONS }, (_, index) => statements(index, isPeer, 0, 2 + random.below(5)));
  const functions = bodies(false);
  // Half of the programs begin with a scheduler that handles all tags, so that no suspension of the others is a trap.
  if (random.below(2) === 0) {
    const tags = Array.from({ length: TAGS }, (_, tag) => tag);
    functions[0] = [1, 2, -1, 3].map((source) => ({ kind: "run", source, tags, then: "again", slot: 0 }));
  }
  return { functions, peers: bodies(true) };
}

/** The program as a module. */
function textOf({ functions, peers }: Program): string {
  const write = (list: readonly Statement[]): string => list.map(one).join("\n");
  const add = (value: string) => `(local.set $acc (i32.add (i32.mul (local.get $acc) (i32.const 3)) ${value}))`;
  const handlers = (tags: readonly number[]) => tags.map((tag) => `(on $t${tag} $h${tag})`).join(" ");
  const blocks = (tags: readonly number[], inner: string) =>
    tags.reduce((body, tag) =>
      `(block $h${tag} (result i32 (ref $k)) ${body} (br $ended))
      (local.set $k) (local.set $v) (call $log (i32.const ${tag}) (local.get $v)) (br $handled)`, inner);
  const one = (s: Statement): string => {
    switch (s.kind) {
      case "mix":
        return add(`(i32.const ${s.value})`);
      case "call":
        return add(`(call $f${s.callee} (local.get $acc))`);
      case "suspend":
        return add(`(suspend $t${s.tag} (local.get $acc))`);
      case "throw":
        return `(if (i32.eqz (i32.and (local.get $acc) (i32.const ${s.mask}))) (then (throw $e (local.get $acc))))`;
      case "try":
        return `(block $out
          ${add(`(block $caught (result i32) (try_table (catch $e $caught) ${write(s.body)}) (br $out))`)})`;
      case "run": {
        const from = s.source >= 0
          ? `(cont.new $k (ref.func $f${s.source}))`
          : `(table.get $kept (i32.const ${-1 - s.source}))`;
        const skip = s.source < 0 ? `(br_if $done (ref.is_null (table.get $kept (i32.const ${-1 - s.source}))))` : "";
        const next = {
          again: `(local.set $v (i32.add (i32.mul (local.get $v) (i32.const 5)) (i32.const 1))) (br $again)`,
          drop: "(br $done)",
          throw: `${add(`(resume_throw $k $e (local.get $v) (local.get $k))`)} (br $done)`,
          keep: `(table.set $kept (i32.const ${s.slot}) (local.get $k)) (br $done)`,
        }[s.then];
        return `(block $done ${skip}
          (local.set $k ${from}) (local.set $v (local.get $acc))
          (loop $again
            (block $handled
              (block $ended
                ${blocks(s.tags, `${add(`(resume $k ${handlers(s.tags)} (local.get $v) (local.get $k))`)} (br $done)`)})
              (unreachable))
            ${add("(local.get $v)")}
            ${next}))`;
      }
      case "peers":
        return `(block $done
          (block $handled
            (block $ended
              ${
          blocks(
            s.tags,
            `${
              add(
                `(resume $sk ${
                  handlers(s.tags)
                } (on $sw switch) (local.get $acc) (ref.null $sk) (cont.new $sk (ref.func $s${s.callee})))`,
              )
            } (br $done)`,
          )
        })
            (unreachable))
          ${add("(local.get $v)")})`;
      case "switch": {
        const fresh = s.callee < FUNCTIONS ? `(cont.new $sk (ref.func $s${s.callee}))` : "(ref.null $sk)";
        return `(block $done
          (local.set $to (if (result (ref null $sk)) (ref.is_null (local.get $peer)) (then ${fresh}) (else (local.get $peer))))
          (br_if $done (ref.is_null (local.get $to)))
          (local.set $peer (ref.null $sk))
          (switch $sk $sw (local.get $acc) (local.get $to))
          (local.set $peer) (local.set $v)
          ${add("(local.get $v)")})`;
      }
    }
  };
  const locals = "(local $acc i32) (local $v i32) (local $k (ref null $k)) (local $to (ref null $sk))";
  return `(module
    (rec
      (type $f (func (param i32) (result i32))) (type $k (cont $f))
      (type $s (func (param i32 (ref null $sk)) (result i32))) (type $sk (cont $s)))
    (import "h" "log" (func $log (param i32 i32)))
    (tag $e (param i32)) (tag $sw (result i32))
    ${Array.from({ length: TAGS }, (_, tag) => `(tag $t${tag} (param i32) (result i32))`).join(" ")}
    (table $kept ${SLOTS} (ref null $k))
    (elem declare func ${functions.map((_, k) => `$f${k} $s${k}`).join(" ")})
    ${
    functions.map((body, k) =>
      `(func $f${k} (type $f) (param $x i32) (result i32) ${locals} (local.set $acc (local.get $x))
        ${write(body)} (local.get $acc))`
    ).join("\n")
  }
    ${
    peers.map((body, k) =>
      `(func $s${k} (type $s) (param $x i32) (param $peer (ref null $sk)) (result i32) ${locals}
        (local.set $acc (local.get $x)) ${write(body)} (local.get $acc))`
    ).join("\n")
  }
    (func (export "clear") (table.fill $kept (i32.const 0) (ref.null $k) (i32.const ${SLOTS})))
    (func (export "main") (param i32) (result i32) (call $f0 (local.get 0))))`;
}

/** An exception of the tag $e. */
class Thrown {
  constructor(readonly value: number) {}
}

/** A trap, which no handler catches. */
class Trapped extends Error {}

type Input = readonly [value: number, peer: Rest | undefined];

/** A computation that waits. */
interface Rest {
  readonly run: Running;
  isConsumed: boolean;
}

/** What a computation asks of its handlers. */
type Request =
  | { readonly kind: "suspend"; readonly tag: number; readonly value: number }
  | { readonly kind: "switch"; readonly to: Rest; readonly value: number };

type Running = Generator<Request, number, Input>;

/** The model: the meaning of a program. */
class Model {
  readonly log: string[] = [];
  readonly #program: Program;
  readonly #kept: (Rest | undefined)[] = new Array(SLOTS).fill(undefined);

  constructor(program: Program) {
    this.#program = program;
  }

  main(x: number): number {
    const run = this.#body(this.#program.functions[0], x, undefined);
    const step = run.next([0, undefined]);
    if (!step.done) throw new Trapped("unhandled tag");
    return step.value;
  }

  /** A function that has not begun: its first input is its argument. */
  *#begin(body: readonly Statement[]): Running {
    const [x, peer] = yield { kind: "suspend", tag: -1, value: 0 };
    return yield* this.#body(body, x, peer);
  }

  #fresh(body: readonly Statement[]): Rest {
    const run = this.#begin(body);
    run.next([0, undefined]);
    return { run, isConsumed: false };
  }

  #consume(rest: Rest): Running {
    if (rest.isConsumed) throw new Trapped("continuation already consumed");
    rest.isConsumed = true;
    return rest.run;
  }

  *#body(body: readonly Statement[], x: number, peer: Rest | undefined): Running {
    const state = { acc: x, peer };
    yield* this.#statements(body, state);
    return state.acc;
  }

  *#statements(
    body: readonly Statement[],
    state: { acc: number; peer: Rest | undefined },
  ): Generator<Request, void, Input> {
    const add = (acc: number, value: number) => (Math.imul(acc, 3) + value) | 0;
    for (const s of body) {
      switch (s.kind) {
        case "mix":
          state.acc = add(state.acc, s.value);
          break;
        case "call": {
          const { acc } = state;
          state.acc = add(acc, yield* this.#body(this.#program.functions[s.callee], acc, undefined));
          break;
        }
        case "suspend": {
          const { acc } = state;
          state.acc = add(acc, (yield { kind: "suspend", tag: s.tag, value: acc })[0]);
          break;
        }
        case "throw":
          if ((state.acc & s.mask) === 0) throw new Thrown(state.acc);
          break;
        case "try": {
          const { acc } = state;
          try {
            yield* this.#statements(s.body, state);
          } catch (error) {
            if (!(error instanceof Thrown)) throw error;
            state.acc = add(acc, error.value);
          }
          break;
        }
        case "run": {
          let rest = s.source >= 0 ? this.#fresh(this.#program.functions[s.source]) : this.#kept[-1 - s.source];
          let v = state.acc;
          while (rest !== undefined) {
            const { acc } = state;
            const end = yield* this.#resume(this.#consume(rest), [v, undefined], s.tags, false);
            if (end.rest === undefined) {
              state.acc = add(acc, end.value);
              break;
            }
            v = end.value;
            state.acc = add(state.acc, v);
            rest = undefined;
            if (s.then === "again") {
              rest = end.rest;
              v = (Math.imul(v, 5) + 1) | 0;
            } else if (s.then === "keep") this.#kept[s.slot] = end.rest;
            else if (s.then === "throw") {
              const before = state.acc;
              const thrown = yield* this.#resume(this.#consume(end.rest), new Thrown(v), [], false);
              state.acc = add(before, thrown.value);
            }
          }
          break;
        }
        case "peers": {
          const { acc } = state;
          const first = this.#consume(this.#fresh(this.#program.peers[s.callee]));
          state.acc = add(acc, (yield* this.#resume(first, [acc, undefined], s.tags, true)).value);
          break;
        }
        case "switch": {
          const to = state.peer ??
            (s.callee < FUNCTIONS ? this.#fresh(this.#program.peers[s.callee]) : undefined);
          if (to === undefined) break;
          state.peer = undefined;
          const { acc } = state;
          const [value, peer] = yield { kind: "switch", to, value: acc };
          state.peer = peer;
          state.acc = add(acc, value);
          break;
        }
      }
    }
  }

  /** Runs a computation with handlers until it ends, or suspends with one of `tags`. */
  *#resume(
    first: Running,
    input: Input | Thrown,
    tags: readonly number[],
    switches: boolean,
  ): Generator<Request, { readonly value: number; readonly rest: Rest | undefined }, Input> {
    let run = first;
    let next: Input | Thrown = input;
    for (;;) {
      const step = next instanceof Thrown ? run.throw(next) : run.next(next);
      if (step.done) return { value: step.value, rest: undefined };
      const request = step.value;
      if (request.kind === "suspend" && tags.includes(request.tag)) {
        this.log.push(`${request.tag} ${request.value}`);
        return { value: request.value, rest: { run, isConsumed: false } };
      }
      if (request.kind === "switch" && request.to.isConsumed) throw new Trapped("continuation already consumed");
      if (request.kind === "switch" && switches) {
        const self = { run, isConsumed: false };
        run = this.#consume(request.to);
        next = [request.value, self];
      } else next = yield* passed(request);
    }
  }
}

/** Passes a request on to outer handlers. Returns the answer, or what is thrown into the computation in its place. */
function* passed(request: Request): Generator<Request, Input | Thrown, Input> {
  try {
    return yield request;
  } catch (error) {
    if (error instanceof Thrown) return error;
    throw error;
  }
}

/** The result of `main`, or what ends it. */
function outcome(main: () => number): string {
  try {
    return `${main()}`;
  } catch (error) {
    if (error instanceof Thrown) return `thrown ${error.value}`;
    if (error instanceof WasmException) return `thrown ${error.payload[0]}`;
    if (error instanceof Trapped || error instanceof TrapError) return error.message;
    throw error;
  }
}

const features = { "stack-switching": true };

/**
 * The engines that run the programs in turn: both tiers, and code that is replaced while computations are suspended.
 */
export function stackEngines(): Engine[] {
  const without = Object.fromEntries(OPTIMIZATION_ROWS.map(({ name }) => [name, false]));
  const modes = [{}, { bounds: "explicit" }, { fuel: true }, { deterministic: true }] as const;
  return [
    ...modes.flatMap((mode) => (["optimizing", "baseline"] as const).map((tier) => ({ ...mode, tier }))),
    { tier: "optimizing", optimizations: without } as const,
    { tierUpCalls: 1, lazyFrom: 0 },
    { tierUpCalls: 3, tierUpBatches: true },
    { tierUpIterations: 1, lazyFrom: 0, interruptible: true },
  ].map((options) => NewEngine({ features, ...options }));
}

/** The text of the program of `seed`. */
export function stackProgram(seed: number): string {
  return textOf(makeProgram(new Random(seed * 7919)));
}

/** The fuel that the program of `seed` uses in a tier. */
export function stackFuel(tier: "baseline" | "optimizing", seed: number): number {
  const engine = NewEngine({ features, tier, fuel: true });
  const instance = engine.compile(stackProgram(seed)).instantiate({}, { h: { log() {} } });
  const context = { fuel: 1e9 };
  outcome(() => instance.call(context, "main", seed) as number);
  instance.call({}, "clear");
  instance.close();
  return 1e9 - context.fuel;
}

/** What random programs did. */
export class StackTotals {
  /** Numbers of runs by what ended them: a result, an exception (both with `n` in place of the number), or a trap. */
  readonly ends: Map<string, number> = new Map();
  /** Number of suspensions that a handler received. */
  handled = 0;
}

/** Compares the program of `seed`, run twice, with the model, and adds it to `totals`. Throws where they differ. */
export function compareStackProgram(engine: Engine, seed: number, totals: StackTotals): void {
  const program = makeProgram(new Random(seed * 7919));
  const log: string[] = [];
  const imports = { h: { log: (tag: number, value: number) => log.push(`${tag} ${value}`) } };
  const instance = engine.compile(textOf(program)).instantiate({}, imports);
  const model = new Model(program);
  for (const argument of [seed, 12]) {
    log.length = model.log.length = 0;
    const expected = outcome(() => model.main(argument));
    const found = outcome(() => instance.call({}, "main", argument) as number);
    assert.deepEqual([found, log], [expected, model.log], `seed ${seed}, argument ${argument}`);
    const kind = expected.replace(/-?\d+/, "n");
    totals.ends.set(kind, (totals.ends.get(kind) ?? 0) + 1);
    totals.handled += log.length;
  }
  // Else the table would keep the computations, and those the instance.
  instance.call({}, "clear");
  instance.close();
}
