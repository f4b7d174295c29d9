/** Printing and parsing of IR text: every form there and back. */
import { equal, throws } from "node:assert/strict";
import { parseFunction } from "./parse.ts";
import { printFunction } from "./print.ts";

const EVERY_FORM = `func 3 (i32 i64 f32 f64 ref) -> (i32 i64)
sig 0 (i32 i32) -> (i32)
sig 1 () -> (i32 i64)
sig 2 (ref) -> ()
sig 4 (i32 i64) -> (i64)
site 1 parent=0 call=0x40 func=7
site 2 parent=1 call=0x55 func=8
layout b0 b2 b3 b1
b0(v1:i32 v2:i64 v3:f32 v4:f64 v5:ref):
  v6:i32 = CONST -5
  v7:i64 = CONST -9223372036854775808
  v8:f32 = CONST 0x7fc00001
  v9:f64 = CONST 0x3ff0000000000000
  v10:ref = CONST null
  v11:v128 = CONST 0x000102030405060708090a0b0c0d0e0f
  v12:i32 = ADD v1 v6
  v13:i32 = DIV_S v12 v6 zero overflow @0x1f
  v14:i32 = REM_U v12 v6 @0x20/2
  v15:i32 = LOAD memory0[v12+4294967295] @0x21
  v16:i64 = LOAD32_U context.7[80]
  v17:i64 = LOAD context.sizes[64]
  v18:i32 = LOAD pointer.const[v17+16] UNINITIALIZED_ELEMENT @0x22
  STORE memory0[v12] v15
  STORE8 memory0[v12+1] v15
  BOUNDS memory1[v12+8] 4
  v19:i64 = CONTEXT +112
  TRAP_IF v18 INDIRECT_CALL_TYPE
  v20:i32 = SELECT v12 v13 v14
  v21:i32 = CALL f2(v12 v13) sig0 @0x30
  v22:none = CALL_RECORD (v5) sig1 NULL_FUNCTION
  v23:i32 = RESULT v22 0
  v24:i64 = RESULT v22 1
  CALL_IMPORT f0(v5) sig2
  v25:i64 = CALL_BUILTIN memory_grow(v12 v24) sig4
  POLL
  BRANCH v21 b1(v20 v24) b2() unlikely
b1(v26:i32 v27:i64) loop depth=1:
  SWITCH v26 b1(v26 v27) b2() b3(v26)
b2() cold:
  TRAP UNREACHABLE
b3(v28:i32):
  RETURN (v28 v24)
`;

Deno.test("every form of IR text survives parsing and printing", () => {
  equal(printFunction(parseFunction(EVERY_FORM), { positions: true }), EVERY_FORM);
});

Deno.test("an IrFunction is reusable", () => {
  const f = parseFunction(EVERY_FORM);
  const small = "func 0 () -> ()\nb0():\n  RETURN ()\n";
  equal(printFunction(parseFunction(small, f)), small);
  equal(printFunction(parseFunction(EVERY_FORM, f), { positions: true }), EVERY_FORM);
});

Deno.test("comments and blank lines are skipped", () => {
  const f = parseFunction("func 0 () -> ()  ; nothing\n\n; more\nb0():\n  RETURN () ; end\n");
  equal(printFunction(f), "func 0 () -> ()\nb0():\n  RETURN ()\n");
});

for (
  const [fault, text, message] of [
    ["an unknown operation", "func 0 () -> ()\nb0():\n  FROB v1\n", /unknown operation "FROB"/],
    ["a double definition", "func 0 () -> ()\nb0(v1:i32):\n  v1:i32 = CONST 1\n", /v1 is defined twice/],
    ["blocks out of order", "func 0 () -> ()\nb1():\n", /expected block b0/],
    ["left-over text", "func 0 () -> ()\nb0():\n  RETURN () v1\n", /unexpected "v1"/],
    ["no block at all", "func 0 () -> ()\n", /no blocks/],
    ["a huge number", "func 0 () -> ()\nb0(v999999999:i32):\n", /too large/],
  ] as const
) {
  Deno.test(`IR text with ${fault} is refused`, () => {
    throws(() => parseFunction(text), { name: "MalformedError", message });
  });
}
