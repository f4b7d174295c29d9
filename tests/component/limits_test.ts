/** Limits of calls of components, with and without tasks that outlive the call; calls that wait for promises. */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";

const engine = NewEngine({ interruptible: true, fuel: true });

/** An instance whose function `f` returns 7 and whose `spin` never returns. */
function instanceWith(definitions: string) {
  const text = `(component
    (core module $m (func (export "f") (result i32) (i32.const 7)) (func (export "spin") (loop (br 0))))
    (core instance $i (instantiate $m))
    ${definitions}
    (func (export "f") (result u32) (canon lift (core func $i "f")))
    (func (export "spin") (canon lift (core func $i "spin"))))`;
  return compileComponent(engine, componentToBinary(text)).instantiate();
}

Deno.test("a synchronous component's calls are stopped by deadline and fuel", () => {
  assert.equal(instanceWith("").call({ deadline: 60_000, fuel: 1000 }, "f"), 7);
  assert.throws(() => instanceWith("").call({ deadline: 20 }, "spin"), { code: "interrupted" });
  assert.throws(() => instanceWith("").call({ fuel: 1000 }, "spin"), { code: "out-of-fuel" });
});

/**
 * A component with tasks: `spin` never returns, `wait` waits for the host, `yield` yields forever, `count` yields n
 * times.
 */
const TASKS = `(component
  (import "ask" (func $ask async (result u32)))
  (core module $m
    (import "i" "ask" (func $ask (result i32)))
    (import "i" "yield" (func $yield (result i32)))
    (import "i" "return" (func $return (param i32)))
    (func (export "spin") (loop (br 0)))
    (func (export "wait") (call $return (call $ask)))
    (func (export "yield") (loop (drop (call $yield)) (br 0)))
    (func (export "count") (param $n i32)
      (loop $more
        (drop (call $yield))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $more (local.get $n)))
      (call $return (i32.const 7)))
    (func (export "now") (param $n i32) (result i32)
      (loop $more
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br_if $more (local.get $n)))
      (i32.const 7)))
  (core func $ask (canon lower (func $ask)))
  (core func $yield (canon thread.yield))
  (core func $return (canon task.return (result u32)))
  (core instance $i (instantiate $m (with "i" (instance
    (export "ask" (func $ask)) (export "yield" (func $yield)) (export "return" (func $return))))))
  (func (export "spin") async (result u32) (canon lift (core func $i "spin") async))
  (func (export "wait") async (result u32) (canon lift (core func $i "wait") async))
  (func (export "yield") async (result u32) (canon lift (core func $i "yield") async))
  (func (export "count") async (param "n" u32) (result u32) (canon lift (core func $i "count") async))
  (func (export "now") (param "n" u32) (result u32) (canon lift (core func $i "now"))))`;

const tasks = compileComponent(engine, TASKS);

function withTasks(ask: () => Promise<number> = () => new Promise<number>(() => {})) {
  return tasks.instantiate({}, { ask });
}

/** A guard for promises that must be settled by a limit. */
const NEVER = 60_000;

Deno.test("tasks that run, wait or yield are stopped by a deadline", async () => {
  for (const name of ["spin", "yield", "wait"]) {
    await assert.rejects(withTasks().call<Promise<number>>({ deadline: 20 }, name), {
      name: "TrapError",
      code: "interrupted",
      detail: /^the deadline/,
    }, name);
  }
  assert.throws(() => withTasks().call({ deadline: 20 }, "now", 0), { code: "interrupted" });
  const instance = withTasks(() => Promise.resolve(5));
  assert.equal(await instance.call<Promise<number>>({ deadline: NEVER }, "wait"), 5);
  assert.equal(await instance.call<Promise<number>>({ deadline: NEVER }, "count", 3), 7);
});

Deno.test("tasks of a call share its fuel, which the context has afterwards", async () => {
  await assert.rejects(withTasks().call<Promise<number>>({ fuel: 10_000 }, "yield"), { code: "out-of-fuel" });
  await assert.rejects(withTasks().call<Promise<number>>({ fuel: 10_000 }, "spin"), { code: "out-of-fuel" });
  const used = async (name: string, n: number): Promise<number> => {
    const context = { fuel: 1_000_000 };
    assert.equal(await withTasks().call<Promise<number>>(context, name, n), 7);
    return 1_000_000 - context.fuel;
  };
  const [one, two] = [await used("count", 100), await used("count", 200)];
  assert.ok(one > 300 && two - one > 300, `${one} and ${two} units`);
  assert.ok(await used("now", 100) > 200);
});

Deno.test("tasks of a call share its processor time, and waits do not count", async () => {
  for (const name of ["spin", "yield"]) {
    await assert.rejects(withTasks().call<Promise<number>>({ processorTime: 20 }, name), {
      name: "TrapError",
      code: "interrupted",
      detail: "the limit of 20 ms of processor time",
    }, name);
  }
  assert.throws(() => withTasks().call({ processorTime: 20 }, "now", 0), { code: "interrupted" });
  const later = withTasks(() => new Promise((resolve) => setTimeout(() => resolve(5), 520)));
  assert.equal(await later.call<Promise<number>>({ processorTime: 500 }, "wait"), 5);
  assert.throws(() => withTasks().call({ processorTime: -1 }, "now", 1), RangeError);
});

Deno.test("a signal ends a call that waits", async () => {
  const controller = new AbortController();
  const call = withTasks().call<Promise<number>>({ signal: controller.signal }, "wait");
  controller.abort(new RangeError("enough"));
  await assert.rejects(call, { name: "RangeError", message: "enough" });
});

Deno.test("long code of a task is not preempted in the middle of its instance", async () => {
  const instance = withTasks();
  const count = 30_000_000;
  const [first, second] = [instance.call({}, "now", count), instance.call<Promise<number>>({}, "count", 2)];
  assert.deepEqual([first, await second], [7, 7]);
});

Deno.test("a limit that nothing would enforce is refused", () => {
  const plain = compileComponent(NewEngine(), TASKS).instantiate({}, { ask: () => 0 });
  for (const context of [{ deadline: 1000 }, { fuel: 1000 }, { processorTime: 1000 }]) {
    assert.throws(() => plain.call(context, "count", 1), { name: "TypeError", message: /compile the module with/ });
  }
});

/** A component without async functions whose import may return a promise. */
const ASKING = `(component
  (import "ask" (func $ask (param "n" u32) (result u32)))
  (core module $m
    (import "i" "ask" (func $ask (param i32) (result i32)))
    (global $calls (mut i32) (i32.const 0))
    (func (export "twice") (param i32) (result i32)
      (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
      (i32.add (call $ask (local.get 0)) (call $ask (local.get 0))))
    (func (export "spin") (loop (br 0)))
    (func (export "calls") (result i32) (global.get $calls)))
  (core func $ask (canon lower (func $ask)))
  (core instance $i (instantiate $m (with "i" (instance (export "ask" (func $ask))))))
  (func (export "twice") (param "n" u32) (result u32) (canon lift (core func $i "twice")))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "calls") (result u32) (canon lift (core func $i "calls"))))`;

const asking = compileComponent(engine, ASKING);
const later = (n: number) => new Promise<number>((resolve) => setTimeout(() => resolve(n), 1));

Deno.test("callAsync waits for promises of the host, one call after the other", async () => {
  const instance = asking.instantiate({}, { ask: later });
  const calls = [instance.callAsync({}, "twice", 4), instance.callAsync({}, "twice", 5)];
  await Promise.resolve();
  await Promise.resolve();
  assert.throws(() => instance.call({}, "calls"), /cannot enter component instance/);
  assert.deepEqual(await Promise.all(calls), [8, 10]);
  assert.equal(instance.call({}, "calls"), 2);
  assert.equal(await instance.callAsync({}, "calls"), 2);
  assert.throws(() => instance.call({}, "twice", 1), { name: "TypeError" });
});

Deno.test("a rejected promise of the host is the error of callAsync", async () => {
  const instance = asking.instantiate({}, { ask: () => Promise.reject(new RangeError("no")) });
  await assert.rejects(instance.callAsync({}, "twice", 4), { name: "RangeError", message: "no" });
});

Deno.test("callAsync obeys deadline, fuel and signal", async () => {
  const make = (ask: (n: number) => unknown = later) => asking.instantiate({}, { ask });
  await assert.rejects(make().callAsync({ deadline: 20 }, "spin"), { code: "interrupted" });
  await assert.rejects(make(() => new Promise(() => {})).callAsync({ deadline: 20 }, "twice", 1), {
    code: "interrupted",
  });
  await assert.rejects(make().callAsync({ fuel: 1000 }, "spin"), { code: "out-of-fuel" });
  const context = { fuel: 1000 };
  await make().callAsync(context, "twice", 1);
  assert.ok(context.fuel < 1000);
  const controller = new AbortController();
  const call = make().callAsync({ signal: controller.signal }, "spin");
  setTimeout(() => controller.abort(new RangeError("enough")), 5);
  await assert.rejects(call, { name: "RangeError", message: "enough" });
});

/** A component with tasks, whose synchronous functions ask the host: one of its own, and one of a nested component. */
const MIXED = `(component
  (import "ask" (func $ask (param "n" u32) (result u32)))
  (component $inner
    (import "ask" (func $ask (param "n" u32) (result u32)))
    (core module $m
      (import "i" "ask" (func $ask (param i32) (result i32)))
      (func (export "more") (param i32) (result i32) (i32.add (i32.const 1) (call $ask (local.get 0)))))
    (core func $ask (canon lower (func $ask)))
    (core instance $i (instantiate $m (with "i" (instance (export "ask" (func $ask))))))
    (func (export "more") (param "n" u32) (result u32) (canon lift (core func $i "more"))))
  (instance $inner (instantiate $inner (with "ask" (func $ask))))
  (core func $ask (canon lower (func $ask)))
  (core func $more (canon lower (func $inner "more")))
  (core func $yield (canon thread.yield))
  (core func $return (canon task.return (result u32)))
  (core module $m
    (import "i" "ask" (func $ask (param i32) (result i32)))
    (import "i" "more" (func $more (param i32) (result i32)))
    (import "i" "yield" (func $yield (result i32)))
    (import "i" "return" (func $return (param i32)))
    (global $busy (mut i32) (i32.const 0))
    (func (export "both") (param i32) (result i32)
      (local $sum i32)
      (global.set $busy (i32.const 1))
      (local.set $sum (i32.add (call $ask (local.get 0)) (call $more (local.get 0))))
      (global.set $busy (i32.const 0))
      (local.get $sum))
    (func (export "seen") (drop (call $yield)) (call $return (global.get $busy))))
  (core instance $i (instantiate $m (with "i" (instance
    (export "ask" (func $ask)) (export "more" (func $more))
    (export "yield" (func $yield)) (export "return" (func $return))))))
  (func (export "both") (param "n" u32) (result u32) (canon lift (core func $i "both")))
  (func (export "seen") async (result u32) (canon lift (core func $i "seen") async)))`;

Deno.test("a synchronous function of a component with tasks waits for the host, and nothing enters it meanwhile", async () => {
  const mixed = compileComponent(engine, MIXED);
  const instance = mixed.instantiate({}, { ask: later });
  assert.deepEqual(await Promise.all([instance.callAsync({}, "both", 4), instance.callAsync({}, "both", 5)]), [9, 11]);
  const task = instance.callAsync({}, "seen");
  const waiting = instance.callAsync({}, "both", 6);
  await Promise.resolve();
  await Promise.resolve();
  assert.throws(() => instance.call({}, "both", 1), /cannot enter component instance/);
  assert.equal(await waiting, 13);
  assert.equal(await task, 0, "the task goes on when the function has ended");
  assert.equal(mixed.instantiate({}, { ask: (n: number) => n }).call({}, "both", 1), 3);
  assert.throws(() => instance.call({}, "both", 1), /cannot block a synchronous task/);
  const never = mixed.instantiate({}, { ask: () => new Promise(() => {}) });
  await assert.rejects(never.callAsync({ deadline: 20 }, "both", 1), { code: "interrupted" });
});
