/**
 * Scripts: each command as data, modules parsed on request.
 */
import assert from "node:assert/strict";
import { HEAP } from "../wasm/types.ts";
import { type Command, parseScript } from "./script.ts";

function one(text: string): Command {
  const commands = parseScript(text);
  assert.equal(commands.length, 1);
  return commands[0];
}

/** The result patterns of `(assert_return (get "x") …)`. */
function expected(text: string): unknown[] {
  const command = one(`(assert_return (get "x") ${text})`);
  assert.ok(command.kind === "assert_return");
  return command.expected;
}

Deno.test("commands come with their lines", () => {
  const commands = parseScript(`(module $M (func))
    (module definition $D)
    (module instance $I $D)
    (register "m" $M)
    (invoke $M "f" (i32.const -1) (i64.const -1) (f32.const nan:0x200000) (f64.const -0) (ref.null func) (ref.extern 3))
    (assert_return (get $M "g"))
    (assert_trap (invoke "f") "unreachable")
    (assert_trap (module) "x")
    (assert_exhaustion (invoke "f") "call stack exhausted")
    (assert_exception (invoke "f"))
    (assert_malformed (module quote "(bla)") "unknown operator")
    (assert_malformed (module binary "") "unexpected end")
    (assert_invalid (module) "m") (assert_unlinkable (module) "m")
    (assert_malformed_custom (module) "m") (assert_invalid_custom (module) "m")
    (thread $T (shared (module $M)) (register "a") (invoke "f"))
    (wait $T)`);
  assert.deepEqual(
    commands.map(({ kind, line }) => `${line} ${kind}`),
    [
      ...["1 module", "2 definition", "3 instance", "4 register", "5 action", "6 assert_return", "7 assert_trap"],
      ...["8 assert_trap_module", "9 assert_exhaustion", "10 assert_exception", "11 assert_malformed"],
      ...["12 assert_malformed", "13 assert_invalid", "13 assert_unlinkable", "14 assert_malformed_custom"],
      ...["14 assert_invalid_custom", "15 thread", "16 wait"],
    ],
  );
  assert.deepEqual(commands[4], {
    kind: "action",
    line: 5,
    action: {
      kind: "invoke",
      module: "M",
      field: "f",
      args: [
        { type: "i32", bits: 0xffffffff },
        { type: "i64", bits: 0xffff_ffff_ffff_ffffn },
        { type: "f32", bits: 0x7fa00000 },
        { type: "f64", bits: 0x8000_0000_0000_0000n },
        { type: "ref.null", heap: HEAP.func },
        { type: "ref.extern", host: 3 },
      ],
    },
  });
  const instance = commands[2];
  assert.ok(instance.kind === "instance" && instance.id === "I" && instance.definition === "D");
  const thread = commands.at(-2)!;
  assert.ok(thread.kind === "thread" && thread.commands.length === 2);
  assert.deepEqual([thread.id, thread.shared], ["T", ["M"]]);
});

Deno.test("result patterns", () => {
  assert.deepEqual(expected("(f32.const nan:canonical) (f64.const nan:arithmetic) (i32.const 7)"), [
    { type: "f32", bits: 0, nan: "canonical" },
    { type: "f64", bits: 0n, nan: "arithmetic" },
    { type: "i32", bits: 7 },
  ]);
  assert.deepEqual(
    expected("(ref.null) (ref.null any) (ref.extern) (ref.extern 2) (ref.func) (ref.i31) (ref.host 1)"),
    [
      { type: "ref.null" },
      { type: "ref.null", heap: HEAP.any },
      { type: "ref", heap: HEAP.extern },
      { type: "ref", heap: HEAP.extern, host: 2 },
      { type: "ref", heap: HEAP.func },
      { type: "ref", heap: HEAP.i31 },
      { type: "ref", heap: HEAP.any, host: 1 },
    ],
  );
  assert.deepEqual(expected("(either (i32.const 1) (i32.const 2))"), [
    { type: "either", options: [{ type: "i32", bits: 1 }, { type: "i32", bits: 2 }] },
  ]);
  assert.deepEqual(expected("(v128.const f32x4 1 nan:canonical nan:arithmetic nan)"), [{
    type: "v128",
    shape: "f32x4",
    bytes: Uint8Array.of(0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x7f),
    nans: [undefined, "canonical", "arithmetic", undefined],
  }]);
});

Deno.test("a bad module does not stop the script", () => {
  const commands = parseScript('(module (func (bla)) $) (module quote "(") (module binary "x") (module)');
  const outcomes = commands.map((command) => {
    assert.ok(command.kind === "module");
    try {
      return command.module.parse().bytes.length;
    } catch (error) {
      return (error as Error).name;
    }
  });
  assert.deepEqual(outcomes, ["MalformedError", "MalformedError", "MalformedError", 8]);
});

Deno.test("fields without (module …) are a module, and a module has its text", () => {
  const commands = parseScript('(func (export "f")) (memory 1) (invoke "f") (module $x  (func))');
  assert.deepEqual(commands.map((command) => command.kind), ["module", "action", "module"]);
  assert.ok(commands[0].kind === "module" && commands[2].kind === "module");
  assert.equal(commands[0].module.text, '(func (export "f")) (memory 1)');
  assert.equal(commands[0].module.parse().exports.length, 1);
  assert.equal(commands[2].module.text, "(module $x  (func))");
  assert.equal(commands[2].module.parse().names.module, "x");
});

Deno.test("unknown commands are reported with their place", () => {
  const rows: [string, RegExp][] = [
    ["(assert_returns)", /unknown operator assert_returns/],
    ["(invoke)", /unexpected token \)/],
    ["(assert_return (module))", /unexpected token module/],
    ['(assert_malformed (func) "x")', /unexpected token func/],
    ['(invoke "f" (i32.add))', /unexpected token i32.add/],
    ['(invoke "f" (i32.const 1 2))', /unexpected token 2/],
    ["(module", /end of text/],
    [")", /unexpected token \)/],
    ['(assert_return (get "x") ' + "(either ".repeat(100_000), /nested too deep/],
    ["(thread ".repeat(100_000), /nested too deep/],
  ];
  for (const [text, message] of rows) {
    assert.throws(() => parseScript(text), (error: Error & { where: string }) => {
      assert.equal(error.name, "MalformedError");
      assert.match(error.message, message);
      assert.match(error.where, /^at 1:\d+$/);
      return true;
    }, text.slice(0, 60));
  }
});
