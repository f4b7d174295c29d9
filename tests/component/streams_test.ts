/**
 * Streams, futures and asynchronous functions between JavaScript and a component: ReadableStreams and iterables in both
 * directions, backpressure, cancellation, errors of sources, and traps.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { NewEngine } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { compileComponent } from "../../component/mod.ts";
import { until } from "../support/http_requests.ts";

const COMPONENT = new TextDecoder().decode(readFile(fileURLToPath(new URL("fixtures/streams.wat", import.meta.url))));

interface Exports {
  sum(bytes: unknown): Promise<number>;
  first(bytes: unknown): Promise<number>;
  count(n: number): Promise<ReadableStream<number>>;
  written(): number;
  fail(): Promise<ReadableStream<number>>;
  words(): Promise<ReadableStream<string>>;
  length(text: unknown): Promise<Promise<number>>;
  twice(): Promise<number>;
}

const component = compileComponent(NewEngine(), COMPONENT);

function instantiate(ask: (question: string) => unknown = () => 0): Exports {
  return component.instantiate<Exports>({}, { ask }).exports;
}

async function all<T>(stream: ReadableStream<T>): Promise<T[]> {
  const items: T[] = [];
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) items.push(next.value);
  return items;
}

function streamOf(chunks: readonly unknown[], onCancel: () => void = () => {}): ReadableStream<unknown> {
  const waiting = [...chunks];
  return new ReadableStream({
    pull(controller) {
      if (waiting.length === 0) controller.close();
      else controller.enqueue(waiting.shift());
    },
    cancel: onCancel,
  });
}

Deno.test("a component reads a stream of bytes from any source", async () => {
  const { sum } = instantiate();
  assert.equal(await sum(streamOf([Uint8Array.of(1, 2, 3, 4, 5), Uint8Array.of(6), new Uint8Array(0)])), 21);
  assert.equal(await sum(Uint8Array.of(1, 2, 3, 4)), 10);
  assert.equal(await sum([250, 5]), 255);
  assert.equal(await sum(new Set([1, 2])), 3);
  assert.equal(await sum([]), 0);
  async function* later() {
    yield Uint8Array.of(1, 2);
    await new Promise((resolve) => setTimeout(resolve, 1));
    yield 3;
  }
  assert.equal(await sum(later()), 6);
});

Deno.test("an argument that is not a stream ends only its call", async () => {
  const { sum } = instantiate();
  const error = { name: "TypeError", message: "Expected a ReadableStream or an iterable, not number" };
  const running = sum(streamOf([Uint8Array.of(1), Uint8Array.of(2)]));
  await Promise.all([assert.rejects(sum(5), error), assert.rejects(sum(6), error)]);
  assert.equal(await running, 3);
  assert.equal(await sum([1, 2]), 3);
});

Deno.test("a source is cancelled when the component drops its end", async () => {
  let cancelled = false;
  const source = streamOf(Array.from({ length: 9 }, (_, k) => Uint8Array.of(9 - k)), () => cancelled = true);
  assert.equal(await instantiate().first(source), 9);
  await until(() => cancelled);
});

Deno.test("an error of a source ends the call that reads it", async () => {
  const broken = new ReadableStream({ pull: (controller) => controller.error(new RangeError("broken source")) });
  await assert.rejects(instantiate().sum(broken), { name: "RangeError", message: "broken source" });
});

Deno.test("JavaScript reads a component's streams, whose writer waits for it", async () => {
  const { count, words, written } = instantiate();
  assert.deepEqual(await all(await count(5)), [0, 1, 2, 3, 4]);
  assert.deepEqual(await all(await words()), ["first", "second"]);
  assert.deepEqual(await all(await count(0)), []);
  const reader = (await count(1_000_000)).getReader();
  assert.deepEqual([(await reader.read()).value, (await reader.read()).value], [0, 1]);
  await reader.cancel();
  await until(() => written() > 0);
  assert.ok(written() < 10, `${written()} elements were written`);
});

Deno.test("a trap of the writer is the error of the stream", async () => {
  const reader = (await instantiate().fail()).getReader();
  assert.equal((await reader.read()).value, 0);
  await assert.rejects(reader.read(), { name: "TrapError", message: /unreachable/ });
});

Deno.test("futures are promises in both directions", async () => {
  const { length } = instantiate();
  assert.equal(await (await length(Promise.resolve("grüße"))), 7);
  assert.equal(await (await length("text")), 4);
  await assert.rejects(length(Promise.reject(new RangeError("no text"))), { name: "RangeError", message: "no text" });
});

Deno.test("asynchronous functions of the host end later", async () => {
  const { twice } = instantiate((question) =>
    new Promise((resolve) => setTimeout(() => resolve(question === "first" ? 21 : 0), 1))
  );
  assert.deepEqual(await Promise.all([twice(), twice()]), [42, 42]);
  await assert.rejects(instantiate(() => Promise.reject(new RangeError("no answer"))).twice(), { name: "RangeError" });
});

/** Returns the handles of a stream and a future, `10 * s + f`. */
const HOLDER = `(component
  (type $s (stream u8)) (type $f (future u32))
  (core module $m (memory (export "m") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64))
    (func (export "hold") (param i32 i32 i32 i32) (result i32)
      (i32.add (i32.mul (i32.const 10) (local.get 0)) (local.get 1))))
  (core instance $i (instantiate $m))
  (func (export "hold") (param "s" $s) (param "f" $f) (param "t" string) (result u32)
    (canon lift (core func $i "hold") (memory (core memory $i "m")) (realloc (core func $i "realloc")))))`;

/** The same, in a component whose calls are tasks. */
const HOLDER_OF_TASKS = HOLDER.replace("(core instance", "(core func (canon backpressure.inc)) (core instance");

for (const [kind, text] of [["a call", HOLDER], ["a task", HOLDER_OF_TASKS]] as const) {
  Deno.test(`streams and futures stay JavaScript's when a later argument of ${kind} is refused`, async () => {
    const instance = compileComponent(NewEngine(), text).instantiate({ resettable: true });
    const hold = instance.exports.hold as (s: unknown, f: unknown, t: unknown) => number;
    let pulls = 0;
    const stream = new ReadableStream({
      pull: (controller) => {
        pulls++;
        controller.enqueue(Uint8Array.of(7));
      },
    }, { highWaterMark: 0 });
    let returns = 0;
    const items = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false, value: 1 }),
        return: () => ({ done: true, value: returns++ }),
      }),
    };
    let waits = 0;
    const future = { then: () => waits++ };
    for (const source of [stream, items, stream]) {
      assert.throws(() => hold(source, future, 5), TypeError);
      assert.throws(() => hold(source, future, Symbol()), TypeError);
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.deepEqual([stream.locked, pulls, returns, waits], [false, 0, 0, 0]);
    await assert.rejects(instance.callAsync({}, "hold", stream, future, 5), TypeError);
    assert.deepEqual([stream.locked, waits], [false, 0]);
    instance.reset(); // nothing of the refused calls is in progress
    assert.equal(hold(stream, future, ""), 12, "the refused calls left no handles");
    assert.equal(stream.locked, true);
    assert.throws(() => hold(stream, future, ""), TypeError);
    instance.close();
    const other = new ReadableStream({ start: (controller) => controller.enqueue(Uint8Array.of(9)) });
    const again = compileComponent(NewEngine(), text).instantiate();
    assert.throws(() => (again.exports.hold as typeof hold)(other, 1, 5), TypeError);
    assert.deepEqual(await other.getReader().read(), { done: false, value: Uint8Array.of(9) });
    again.close();
  });
}
