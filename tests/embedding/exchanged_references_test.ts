/**
 * Random exchange of references between instances that JavaScript keeps and drops: functions, values of the host and
 * exceptions pass by calls, exceptions and JavaScript. In: seeds. Out: what each living instance holds, compared with a
 * model of numbers after each few steps, while collections, sweeps and new instances reuse the memory of dropped ones.
 */
import assert from "node:assert/strict";
import { host, NewEngine } from "../../engine/mod.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { collectGarbage } from "../support/collect_garbage.ts";

/** Each instance holds a function $f, a value $e, an exception $x, and a function $p to which it can pass $f. */
const MODULE = NewEngine({ tier: "baseline" }).compile(`(module
  (type $secret (func (result i32))) (type $get (func (result funcref))) (type $put (func (param funcref)))
  (type $value (func (result externref))) (type $do (func))
  (import "h" "id" (global $id i32)) (import "h" "tag" (tag $t (param funcref externref)))
  (global $f (mut funcref) (ref.null func)) (global $e (mut externref) (ref.null extern))
  (global $x (mut exnref) (ref.null exn)) (table $p 2 funcref)
  (func $own (export "secret") (type $secret) (global.get $id))
  (func $get (export "get") (type $get) (global.get $f))
  (func (export "put") (type $put) (global.set $f (local.get 0)))
  (func (export "value") (type $value) (global.get $e))
  (func (export "setValue") (param externref) (global.set $e (local.get 0)))
  (func (export "throw") (type $do) (throw $t (global.get $f) (global.get $e)))
  (func (export "own") (param i32)
    (global.set $f (select (result funcref) (ref.func $own) (ref.func $get) (local.get 0))))
  (func (export "target") (param funcref) (table.set $p (i32.const 1) (local.get 0)))
  (func (export "pass") (if (ref.test (ref $put) (table.get $p (i32.const 1))) (then
    (call_ref $put (global.get $f) (ref.cast (ref $put) (table.get $p (i32.const 1)))))))
  (func (export "take") (param funcref) (global.set $f (call_ref $get (ref.cast (ref $get) (local.get 0)))))
  (func (export "follow") (if (ref.test (ref $get) (global.get $f)) (then
    (global.set $f (call_ref $get (ref.cast (ref $get) (global.get $f)))))))
  (func (export "takeValue") (param funcref)
    (global.set $e (call_ref $value (ref.cast (ref $value) (local.get 0)))))
  (func (export "catch") (param funcref)
    (block $h (result funcref externref)
      (try_table (catch $t $h) (call_ref $do (ref.cast (ref $do) (local.get 0)))) (unreachable))
    (global.set $e) (global.set $f))
  (func (export "keep") (param funcref) (global.set $x (block $h (result exnref)
    (try_table (catch_all_ref $h) (call_ref $do (ref.cast (ref $do) (local.get 0)))) (unreachable))))
  (func (export "open")
    (block $h (result funcref externref) (try_table (catch $t $h) (throw_ref (global.get $x))) (unreachable))
    (global.set $e) (global.set $f))
  (func (export "clear")
    (global.set $f (ref.null func)) (global.set $e (ref.null extern)) (table.set $p (i32.const 1) (ref.null func)))
  (func (export "look") (result i32)
    (if (ref.is_null (global.get $f)) (then (return (i32.const -1))))
    (if (ref.test (ref $secret) (global.get $f)) (then
      (return (call_ref $secret (ref.cast (ref $secret) (global.get $f))))))
    (drop (call_ref $get (ref.cast (ref $get) (global.get $f))))
    (i32.const -2)))`);

type Exports = Record<string, (...args: unknown[]) => unknown>;

/** A function of the instance with a number: the one that returns the number, or the one that returns $f. */
type Known = { readonly id: number; readonly kind: "secret" | "get" } | undefined;

/** The state that an instance should have, whether JavaScript still keeps the instance or not. */
interface State {
  readonly tag: unknown;
  f: Known;
  value: number | undefined;
  target: State | undefined;
  exception: { readonly tag: unknown; readonly f: Known; readonly value: number | undefined } | undefined;
}

const LIVING = 10;
const TAG_EVERY = 12;

class Exchange {
  readonly #states: State[] = [];
  readonly #living = new Map<State, Exports>();
  #seed: number;
  #values = 0;
  #tag: unknown;
  readonly #shareTags: boolean;

  constructor(seed: number, shareTags: boolean) {
    this.#seed = seed;
    this.#shareTags = shareTags;
  }

  get made(): number {
    return this.#states.length;
  }

  #random(limit: number): number {
    this.#seed = (Math.imul(this.#seed, 1103515245) + 12345) & 0x7fffffff;
    return (this.#seed >> 8) % limit;
  }

  #make(): void {
    const id = this.#states.length;
    if (!this.#shareTags || id % TAG_EVERY === 0) this.#tag = host.tag("funcref", "externref");
    const tag = this.#tag;
    const state: State = { tag, f: undefined, value: undefined, target: undefined, exception: undefined };
    this.#states.push(state);
    this.#living.set(state, MODULE.instantiate({}, { h: { id, tag } }).exports as Exports);
  }

  #any(): [State, Exports] {
    return [...this.#living][this.#random(this.#living.size)];
  }

  step(): void {
    while (this.#living.size < LIVING) this.#make();
    const [a, exports] = this.#any();
    const [b, others] = this.#any();
    const steps: (() => void)[] = [
      () => {
        const kind = this.#random(2) === 0 ? "get" : "secret";
        exports["own"](kind === "secret" ? 1 : 0);
        a.f = { id: this.#states.indexOf(a), kind };
      },
      () => {
        const kind = this.#random(2) === 0 ? "get" : "secret";
        exports["put"](others[kind]);
        a.f = { id: this.#states.indexOf(b), kind };
      },
      () => {
        exports["take"](others["get"]);
        a.f = b.f;
      },
      () => {
        exports["follow"]();
        if (a.f?.kind === "get") a.f = this.#states[a.f.id].f;
      },
      () => {
        exports["target"](others["put"]);
        a.target = b;
      },
      () => {
        exports["pass"]();
        if (a.target !== undefined) a.target.f = a.f;
      },
      () => {
        exports["setValue"]({ value: this.#values });
        a.value = this.#values++;
      },
      () => {
        exports["takeValue"](others["value"]);
        a.value = b.value;
      },
      () => {
        if (a.tag !== b.tag) return void assert.throws(() => exports["catch"](others["throw"]));
        exports["catch"](others["throw"]);
        [a.f, a.value] = [b.f, b.value];
      },
      () => {
        exports["keep"](others["throw"]);
        a.exception = { tag: b.tag, f: b.f, value: b.value };
      },
      () => {
        const { exception } = a;
        if (exception?.tag !== a.tag) return void assert.throws(() => exports["open"]());
        exports["open"]();
        [a.f, a.value] = [exception?.f, exception?.value];
      },
      () => {
        exports["clear"]();
        [a.f, a.value, a.target] = [undefined, undefined, undefined];
      },
      () => void this.#living.delete(a),
      () => void this.#living.delete(a),
    ];
    steps[this.#random(steps.length)]();
  }

  check(): void {
    for (const [{ f, value }, exports] of this.#living) {
      assert.equal(exports["look"](), f === undefined ? -1 : f.kind === "secret" ? f.id : -2);
      assert.equal((exports["value"]() as { value: number } | null)?.value, value);
    }
  }
}

for (const [name, seed, shareTags] of [["shared tags", 1, true], ["tags of their own", 3, false]] as const) {
  Deno.test(`references that instances with ${name} exchange stay valid`, async () => {
    const { thread } = realmStore();
    const exchange = new Exchange(seed, shareTags);
    const before = realmStore().instances.open;
    for (let step = 0; step < 1600; step++) {
      exchange.step();
      if (step % 4 === 0) exchange.check();
      if (step % 160 !== 0) continue;
      thread.attention.sweepDue = step % 320 === 0;
      if (thread.attention.sweepDue) thread.services.atSafepoint();
      collectGarbage();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    // A tag with references keeps the instances that use it alive.
    const left = realmStore().instances.open - before;
    if (!shareTags) assert.ok(left < exchange.made / 2, `${left} of ${exchange.made} instances are left`);
  });
}
