/**
 * Stacks across core modules beside those of the engine: random programs of three core modules that call each other by
 * imports, through a table, with tail calls and exceptions, until they trap. The trap has the frames of the machine
 * stack. STACK_SEEDS=FROM-TO runs other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { TrapError } from "@waft/engine";
import { DebuggedPrograms, duringAll } from "../../project/debug/component_programs.ts";
import { Parts } from "../../project/debug/parts.ts";
import { Random } from "../fuzz/random.ts";

const [FROM, TO] = (process.env["STACK_SEEDS"] ?? "0-60").split("-").map(Number) as [number, number];
/** Core modules, the functions of each, and the index of a module's first function as a multiple of its number. */
const MODULES = 3;
const FUNCTIONS = 3;
const STRIDE = 100;

/** The operations of a script, each with an argument. */
const OPS = { return: 0, table: 1, import: 2, catch: 3, throw: 4, trap: 5, tail: 6, direct: 7 } as const;

/** The functions of module `k`: interpreters of the script, which they share. */
function coreModule(k: number): string {
  const imports = Array.from({ length: k * FUNCTIONS }, (_, n) => n);
  const own = Array.from({ length: FUNCTIONS }, (_, n) => n);
  const isOp = (op: keyof typeof OPS, code: string) =>
    `(if (i32.eq (local.get $op) (i32.const ${OPS[op]})) (then ${code} (br $next)))`;
  const chosen = (names: readonly string[]) =>
    names.map((name, n) =>
      `(if (i32.eq (i32.rem_u (local.get $arg) (i32.const ${names.length})) (i32.const ${n})) (then (call ${name})))`
    ).join(" ");
  const indirect = `(type $f) (local.get $arg)`;
  const body = `(local $op i32) (local $arg i32)
    (loop $next
      (local.set $op (i32.load8_u (global.get $at)))
      (local.set $arg (i32.load8_u offset=1 (global.get $at)))
      (global.set $at (i32.add (global.get $at) (i32.const 2)))
      ${isOp("table", `(call_indirect ${indirect})`)}
      ${isOp("import", chosen(imports.map((n) => `$import${n}`)))}
      ${isOp("catch", `(block $caught (try_table (catch_all $caught) (call_indirect ${indirect})))`)}
      ${isOp("throw", "(throw $e)")}
      ${isOp("trap", "unreachable")}
      ${isOp("tail", `(return_call_indirect ${indirect})`)}
      ${isOp("direct", chosen(own.map((n) => `$own${n}`)))})`;
  return `(core module $m${k}
    (type $f (func))
    (import "base" "table" (table ${MODULES * FUNCTIONS} funcref))
    (import "base" "memory" (memory 1))
    (import "base" "at" (global $at (mut i32)))
    ${imports.map((n) => `(import "m" "${n}" (func $import${n}))`).join(" ")}
    (tag $e)
    ${"(func)".repeat(STRIDE * (k + 1) - imports.length)}
    ${own.map((n) => `(func $own${n} (export "${n + imports.length}") ${body})`).join("\n")}
    (elem (i32.const ${k * FUNCTIONS}) ${own.map((n) => `$own${n}`).join(" ")})
    ${imports.map((n) => `(export "${n}" (func $import${n}))`).join(" ")})
  (core instance $i${k} (instantiate $m${k} (with "base" (instance $base))
    ${k === 0 ? "" : `(with "m" (instance $i${k - 1}))`}))`;
}

function component(script: readonly number[]): string {
  const data = script.map((byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
  return `(component
    (core module $base
      (table (export "table") ${MODULES * FUNCTIONS} funcref)
      (memory (export "memory") 1)
      (global (export "at") (mut i32) (i32.const 0))
      (data (i32.const 0) "${data}"))
    (core instance $base (instantiate $base))
    ${Array.from({ length: MODULES }, (_, k) => coreModule(k)).join("\n")}
    (func (export "run") (canon lift (core func $i${MODULES - 1} "0"))))`;
}

/** A script that does not return or throw out of `run`, and traps at its end. */
function scriptOf(random: Random): number[] {
  const script: number[] = [];
  /** The module of each activation, and whether its caller catches. */
  const stack = [{ module: 0, isCaught: false }];
  for (let k = 0; k < 60; k++) {
    const { module } = stack.at(-1)!;
    const arg = random.below(MODULES * FUNCTIONS);
    const callee = Math.floor(arg / FUNCTIONS);
    const may: (keyof typeof OPS)[] = ["table", "catch", "direct", "tail"];
    if (module > 0) may.push("import");
    if (stack.length > 1) may.push("return", "return", "return");
    if (stack.some(({ isCaught }) => isCaught)) may.push("throw");
    const op = may[random.below(may.length)];
    script.push(OPS[op], arg);
    if (op === "table" || op === "catch") stack.push({ module: callee, isCaught: op === "catch" });
    else if (op === "direct") stack.push({ module, isCaught: false });
    else if (op === "import") {
      stack.push({ module: Math.floor(arg % (module * FUNCTIONS) / FUNCTIONS), isCaught: false });
    } else if (op === "tail") stack[stack.length - 1] = { ...stack.at(-1)!, module: callee };
    else if (op === "return") stack.pop();
    else while (!stack.pop()!.isCaught);
  }
  return [...script, OPS.trap, 0];
}

Deno.test("the stack at a trap has the frames of the machine stack, in core modules that call each other", async () => {
  let compared = 0;
  let across = 0;
  for (let seed = FROM; seed < TO; seed++) {
    const programs = new DebuggedPrograms("stack.wasm", component(scriptOf(new Random(seed))), {});
    const { instance, sessions } = programs.instantiate({}, {});
    let shown: number[] | undefined;
    const parts: Parts = new Parts(programs.programs.map(({ program }) => program), {
      stopped: () => {
        shown = parts.frames().map(({ frame }) => frame.func.index);
        parts.continue();
      },
      logged: () => {},
    });
    for (const session of sessions) parts.attach(session);
    const error = await duringAll(sessions, () => instance.callAsync({}, "run")).catch((error: unknown) => error);
    if (!(error instanceof TrapError) || error.message !== "unreachable") continue;
    // Functions that the debugger has added come after those of the module.
    const frames = error.frames.map(({ funcIndex }) => funcIndex)
      .filter((index) => index >= STRIDE && index % STRIDE < FUNCTIONS);
    assert.deepEqual(shown, frames, `seed ${seed}`);
    compared++;
    const modules = frames.map((index) => Math.floor(index / STRIDE));
    if (modules.some((each, k) => k > 1 && each === modules[0] && modules[k - 1] !== each)) across++;
  }
  assert.ok(compared > (TO - FROM) / 2, `${compared} stacks were compared`);
  assert.ok(across > 0, "a module is on a stack twice, with others between");
});
