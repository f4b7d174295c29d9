/**
 * The cost of boundary crossings on both engines: JavaScript calling wasm, wasm calling JavaScript, a trap that becomes
 * an exception, and a new instance. Out: nanoseconds per operation. Callers are created per engine, so that neither
 * sees the other's type feedback.
 */
import { alternate, type Effort, warmUp } from "./measure.ts";
import type { Call, Exports, Side, SideModule } from "./sides.ts";

/** Costs of one operation in nanoseconds. */
export interface BoundaryResult {
  name: string;
  waftNs: number;
  v8Ns: number;
  ratio: number;
  /** The target that this row counts towards. */
  group: "JS to wasm" | "wasm to JS" | "trap" | "instantiate";
}

const CALLS = `(module
  (type $i (func (param i32) (result i32)))
  (type $d (func (param f64) (result f64)))
  (type $l (func (param i64) (result i64)))
  (import "host" "nothing" (func $nothing))
  (import "host" "i32" (func $i32 (type $i)))
  (import "host" "f64" (func $f64 (type $d)))
  (memory 1)
  (func (export "nothing"))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "add_f64") (param f64 f64) (result f64) (f64.add (local.get 0) (local.get 1)))
  (func (export "add_i64") (param i64 i64) (result i64) (i64.add (local.get 0) (local.get 1)))
  (func (export "add_six") (param i32 i32 i32 i32 i32 i32) (result i32)
    (i32.add (local.get 0) (i32.add (local.get 1) (i32.add (local.get 2)
      (i32.add (local.get 3) (i32.add (local.get 4) (local.get 5)))))))
  (func (export "add_mixed") (param i32 i64 f64) (result f64)
    (f64.add (f64.convert_i32_s (local.get 0)) (f64.add (f64.convert_i64_s (local.get 1)) (local.get 2))))
  (func (export "call_nothing") (param i32)
    (loop $again (call $nothing)
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "call_i32") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (call $i32 (local.get 1)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "call_f64") (param i32) (result f64) (local f64)
    (loop $again
      (local.set 1 (call $f64 (local.get 1)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "unreachable") unreachable)
  (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
)`;

const PLAIN = `(module (func (export "f") (result i32) (i32.const 1)))`;
const WITH_MEMORY = `(module
  (memory (export "memory") 1) (table 4 funcref) (global (mut i32) (i32.const 7))
  (elem (i32.const 0) $f $f) (data (i32.const 8) "some bytes of data")
  (func $f (export "f") (result i32) (i32.load (i32.const 8))))`;

/** Loops in JavaScript, one per kind of call; compiled separately for each engine. */
const CALLERS = {
  nothing: "return (f, n) => { for (let i = 0; i < n; i++) f(); return n; }",
  add: "return (f, n) => { let x = 0; for (let i = 0; i < n; i++) x = f(x, i); return x; }",
  add_f64: "return (f, n) => { let x = 0; for (let i = 0; i < n; i++) x = f(x, 0.5); return x; }",
  add_i64: "return (f, n) => { let x = 0n; for (let i = 0; i < n; i++) x = f(x, 3n); return x; }",
  add_six: "return (f, n) => { let x = 0; for (let i = 0; i < n; i++) x = f(x, i, 1, 2, 3, 4); return x; }",
  add_mixed: "return (f, n) => { let x = 0; for (let i = 0; i < n; i++) x = f(i, 3n, x); return x; }",
  trap: "return (f, n) => { let k = 0; for (let i = 0; i < n; i++) { try { f(0); } catch { k++; } } return k; }",
  load:
    "return (f, n) => { let k = 0; for (let i = 0; i < n; i++) { try { f(0x7ffffff0); } catch { k++; } } return k; }",
} as const;

type Caller = (call: Call, times: number) => unknown;

function newCaller(kind: keyof typeof CALLERS): Caller {
  return new Function(CALLERS[kind])() as Caller;
}

interface Row {
  name: string;
  group: BoundaryResult["group"];
  times: number;
  work(exports: Exports, times: number): () => unknown;
}

function calls(name: string, kind: keyof typeof CALLERS, group: Row["group"], times: number, title = name): Row {
  return {
    name: title,
    group,
    times,
    work: (exports, n) => {
      const caller = newCaller(kind);
      const call = exports[name] as Call;
      return () => caller(call, n);
    },
  };
}

function callsOut(name: string, times: number, title: string): Row {
  return { name: title, group: "wasm to JS", times, work: (exports, n) => () => (exports[name] as Call)(n) };
}

const ROWS: readonly Row[] = [
  calls("nothing", "nothing", "JS to wasm", 200_000, "JS → wasm, ()"),
  calls("add", "add", "JS to wasm", 200_000, "JS → wasm, (i32, i32) → i32"),
  calls("add_f64", "add_f64", "JS to wasm", 200_000, "JS → wasm, (f64, f64) → f64"),
  calls("add_i64", "add_i64", "JS to wasm", 100_000, "JS → wasm, (i64, i64) → i64"),
  calls("add_six", "add_six", "JS to wasm", 200_000, "JS → wasm, (i32 × 6) → i32"),
  calls("add_mixed", "add_mixed", "JS to wasm", 200_000, "JS → wasm, (i32, i64, f64) → f64"),
  callsOut("call_nothing", 100_000, "wasm → JS, ()"),
  callsOut("call_i32", 100_000, "wasm → JS, (i32) → i32"),
  callsOut("call_f64", 100_000, "wasm → JS, (f64) → f64"),
  calls("unreachable", "trap", "trap", 2_000, "trap, unreachable"),
  calls("divide", "trap", "trap", 2_000, "trap, division by zero"),
  calls("load", "load", "trap", 2_000, "trap, memory out of bounds"),
];

/** Measures all crossings. `encode` turns module text into binary. */
export async function measureBoundary(
  waft: Side,
  v8: Side,
  encode: (text: string) => Uint8Array<ArrayBuffer>,
  effort: Effort,
): Promise<BoundaryResult[]> {
  const results: BoundaryResult[] = [];
  const bytes = encode(CALLS);
  const exportsOf = (side: Side) => {
    const host = { nothing: () => {}, i32: (x: number) => x + 1, f64: (x: number) => x + 0.5 };
    return side.compile(bytes).instantiate({ host }).exports;
  };
  const [exportsA, exportsB] = [exportsOf(waft), exportsOf(v8)];
  for (const row of ROWS) {
    results.push(
      await compare(
        row.name,
        row.group,
        row.times,
        row.work(exportsA, row.times),
        row.work(exportsB, row.times),
        effort,
      ),
    );
  }
  for (const [name, text] of [["instantiate, one function", PLAIN], ["instantiate, memory table data", WITH_MEMORY]]) {
    const binary = encode(text);
    const times = 300;
    const work = (module: SideModule) => () => {
      let sum = 0;
      for (let i = 0; i < times; i++) {
        const { exports, close } = module.instantiate();
        sum += (exports["f"] as () => number)();
        close();
      }
      return sum;
    };
    const [a, b] = [work(waft.compile(binary)), work(v8.compile(binary))];
    results.push(await compare(name, "instantiate", times, a, b, effort));
  }
  return results;
}

async function compare(
  name: string,
  group: BoundaryResult["group"],
  times: number,
  a: () => unknown,
  b: () => unknown,
  effort: Effort,
): Promise<BoundaryResult> {
  const [answerA, answerB] = [a(), b()];
  if (answerA !== answerB) throw new Error(`${name}: waft returns ${answerA}, V8 returns ${answerB}`);
  await warmUp(b, { ...effort, warmMs: effort.warmMs / 2 });
  await warmUp(a, { ...effort, warmMs: effort.warmMs / 2 });
  const median = alternate(a, b, effort.rounds);
  const [waftNs, v8Ns] = [median.a * 1e6 / times, median.b * 1e6 / times];
  return { name, group, waftNs, v8Ns, ratio: waftNs / v8Ns };
}
