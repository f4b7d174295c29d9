/**
 * Rows about promise-returning operations: compile, instantiate, their streaming forms, Suspending and promising.
 */
import { describeError, type Namespace, type Row, run, wasm } from "./subject.ts";

const EMPTY = wasm("(module)");
const NEEDS = wasm(`(module (import "m" "f" (func)))`);

async function settled(W: Namespace, action: () => Promise<unknown>): Promise<unknown> {
  let promise: Promise<unknown>;
  try {
    promise = action();
  } catch (error) {
    return `thrown at once: ${describeError(W, error)}`;
  }
  if (!(promise instanceof Promise)) return "no promise";
  try {
    const value = await promise;
    return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
      ? Object.entries(value).map(([key, part]) => `${key}: ${String(part)}`)
      : String(value);
  } catch (error) {
    return `rejected: ${describeError(W, error)}`;
  }
}

function response(bytes: Uint8Array<ArrayBuffer>, type = "application/wasm", status = 200): Response {
  return new Response(bytes, { status, headers: type === "" ? {} : { "content-type": type } });
}

const SOURCES: readonly (readonly [string, () => unknown])[] = [
  ["a response", () => response(EMPTY)],
  ["a promise of one", () => Promise.resolve(response(EMPTY))],
  ["nothing", () => undefined],
  ["bytes", () => EMPTY],
  ["a rejected promise", () => Promise.reject(new SyntaxError("x"))],
  ["another type", () => response(EMPTY, "text/html")],
  ["no type", () => response(EMPTY, "")],
  ["capital letters", () => response(EMPTY, "Application/Wasm")],
  ["a type with parameters", () => response(EMPTY, "application/wasm; charset=utf-8")],
  ["a failure", () => response(EMPTY, "application/wasm", 404)],
  ["damaged bytes", () => response(EMPTY.slice(0, 6))],
  ["no bytes", () => response(EMPTY.slice(0, 0))],
];

export const ASYNC_ROWS: readonly Row[] = [
  ["compile", async (W) => [
    await settled(W, () => W.compile(EMPTY)),
    await settled(W, () => W.compile(EMPTY.slice(0, 5))),
    await settled(W, () => W.compile()),
    await settled(W, () => W.compile({})),
  ]],
  ["instantiate bytes", async (W) => [
    await settled(W, () => W.instantiate(EMPTY)),
    await settled(W, () => W.instantiate(EMPTY.buffer, {})),
    await settled(W, () => W.instantiate(NEEDS)),
    await settled(W, () => W.instantiate(NEEDS, {})),
    await settled(W, () => W.instantiate(NEEDS, { m: {} })),
    await settled(W, () => W.instantiate(NEEDS, { m: { f: () => {} } })),
    await settled(W, () => W.instantiate(EMPTY, 5)),
    await settled(W, () => W.instantiate(EMPTY, null)),
    await settled(W, () => W.instantiate()),
    await settled(W, () => W.instantiate(Uint8Array.of(1, 2))),
  ]],
  ["instantiate a module", async (W) => [
    await settled(W, () => W.instantiate(new W.Module(EMPTY))),
    await settled(W, () => W.instantiate(new W.Module(NEEDS))),
    await settled(W, () => W.instantiate(new W.Module(NEEDS), { m: { f: 1 } })),
    await settled(W, () => W.instantiate(new W.Module(wasm(`(module (func $s unreachable) (start $s))`)))),
  ]],
  ["bytes may change after the call", async (W) => {
    const bytes = EMPTY.slice();
    const promise = W.compile(bytes);
    bytes.fill(0);
    return String(await promise);
  }],
  ["imports of a module are read before the call returns", async (W) => {
    const seen: string[] = [];
    const imports = {
      get m() {
        seen.push("read");
        return { f: () => {} };
      },
    };
    const promise = W.instantiate(new W.Module(NEEDS), imports);
    seen.push("returned");
    await promise;
    return seen;
  }],
  ...SOURCES.flatMap(([name, source]): Row[] => [
    [`compileStreaming of ${name}`, (W) => settled(W, () => W.compileStreaming(source()))],
    [`instantiateStreaming of ${name}`, (W) => settled(W, () => W.instantiateStreaming(source(), {}))],
  ]),
  ["a body that was used", (W) => {
    const used = response(EMPTY);
    return used.arrayBuffer().then(() => settled(W, () => W.compileStreaming(used)));
  }],
  ["instantiateStreaming without imports", (W) => settled(W, () => W.instantiateStreaming(response(NEEDS)))],

  ["a promise is a value like any other", (W) => {
    const promise = Promise.resolve(1);
    const { f, n } = run(
      W,
      `(module (import "m" "f" (func $f (result externref))) (import "m" "f" (func $n (result i32))) (export "n" (func $n))
      (func (export "f") (result externref) (call $f)))`,
      { m: { f: () => promise } },
    );
    return [f() === promise, n()];
  }],
  ["suspending and promising", async (W) => {
    const text =
      `(module (import "m" "f" (func $f (param i32) (result i32))) (func (export "g") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1))))`;
    const { g } = run(W, text, { m: { f: new W.Suspending((x: number) => Promise.resolve(x * 10)) } });
    const later = W.promising(g);
    return [later instanceof Function, await later(4), await Promise.all([1, 2, 3].map((x) => later(x)))];
  }],
  ["a promising call that fails", async (W) => {
    const text = `(module (import "m" "f" (func $f)) (func (export "g") (call $f) unreachable))`;
    const trap = run(W, text, { m: { f: new W.Suspending(() => Promise.resolve()) } });
    const rejects = run(W, text, { m: { f: new W.Suspending(() => Promise.reject(new SyntaxError("x"))) } });
    return [await settled(W, () => W.promising(trap.g)()), await settled(W, () => W.promising(rejects.g)())];
  }],
  ["promising a value other than an exported function", (W) =>
    [undefined, {}, () => {}].map((value) => {
      try {
        return W.promising(value);
      } catch (error) {
        return describeError(W, error);
      }
    })],
];
