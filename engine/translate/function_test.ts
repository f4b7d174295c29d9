/**
 * The IR of small functions, one shape each, with the expected text beside the module.
 */
import { noneBut } from "../testing/optimizations.ts";
import { equal } from "node:assert/strict";
import { translateText } from "../../tests/support/translate_text.ts";
import type { PrintOptions } from "../ir/print.ts";
import type { EnvOptions } from "./module_env.ts";

function golden(
  name: string,
  module: string,
  expected: string,
  index = 0,
  options: Partial<EnvOptions> & PrintOptions = {},
): void {
  Deno.test(name, () => equal(translateText(module, index, options), expected.replace(/^\n/, "")));
}

golden(
  "locals and operands emit nothing",
  "(func (param i32 i32) (result i32) local.get 1 local.get 0 local.set 1)",
  `
func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  RETURN (v2)
`,
);

golden(
  "a block without branches to it makes no IR block",
  "(func (param i32) (result i32) (block (result i32) (local.set 0 (i32.const 7)) (local.get 0)))",
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 7
  RETURN (v2)
`,
);

golden(
  "a last branch to the end of its block is taken back",
  "(func (param i32) (result i32) (block (result i32) (br 0 (i32.const 3)) (drop (i32.const 9)) unreachable))",
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 3
  RETURN (v2)
`,
);

golden(
  "a join has parameters only for differing values",
  `(func (param $c i32) (param $x i32) (result i32) (local $y i32) (local $z i32)
     (if (local.get $c) (then (local.set $y (local.get $x)) (local.set $z (i32.const 4)))
       (else (local.set $z (i32.const 4))))
     (i32.add (local.get $y) (i32.add (local.get $z) (local.get $x))))`,
  `
func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  v3:i32 = CONST 0
  BRANCH v1 b1() b2()
b1():
  v5:i32 = CONST 4
  JUMP b3(v5 v2)
b2():
  v7:i32 = CONST 4
  JUMP b3(v7 v3)
b3(v9:i32 v10:i32):
  v11:i32 = ADD v9 v2
  v12:i32 = ADD v10 v11
  RETURN (v12)
`,
);

golden(
  "an if without else skips to the join",
  `(func (param $c i32) (param $x i32) (result i32)
     (if (i32.eqz (local.get $c)) (then (local.set $x (i32.const 1)))) (local.get $x))`,
  `
func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  v3:i32 = CONST 0
  v4:i32 = EQ v1 v3
  BRANCH v1 b2(v2) b1()
b1():
  v6:i32 = CONST 1
  JUMP b2(v6)
b2(v8:i32):
  RETURN (v8)
`,
);

golden(
  "an if with a constant condition has one arm",
  `(func (param $x i32) (result i32)
     (if (result i32) (i32.const 0) (then (local.get $x)) (else (i32.const 5))))`,
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 0
  v3:i32 = CONST 5
  RETURN (v3)
`,
);

golden(
  "a loop header has parameters for the locals that the loop assigns",
  `(func (param $n i32) (result i32) (local $i i32) (local $unused i32)
     (loop $again (local.set $i (i32.add (local.get $i) (local.get $n)))
       (br_if $again (i32.lt_u (local.get $i) (i32.const 100))))
     (local.get $i))`,
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 0
  JUMP b1(v2)
b1(v4:i32) loop depth=1:
  v5:i32 = ADD v4 v1
  v6:i32 = CONST 100
  v7:i32 = LT_U v5 v6
  BRANCH v7 b1(v5) b2()
b2():
  RETURN (v5)
`,
);

golden(
  "a loop without a back edge is not a loop",
  "(func (param $x i32) (result i32) (loop (local.set $x (i32.const 2))) (local.get $x))",
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 2
  RETURN (v2)
`,
);

golden(
  "loop parameters come before locals; nested loops know their own locals",
  `(func (param $a i32) (param $b i32) (result i32)
     (i32.const 0)
     (loop $outer (param i32) (result i32)
       (loop $inner (local.set $b (i32.sub (local.get $b) (i32.const 1))) (br_if $inner (local.get $b)))
       (local.set $a (i32.xor (local.get $a) (local.get $b)))
       (i32.add (local.get $a))
       (br_if $outer (local.get $a))))`,
  `
func 0 (i32 i32) -> (i32)
b0(v1:i32 v2:i32):
  v3:i32 = CONST 0
  JUMP b1(v3 v2 v1)
b1(v5:i32 v6:i32 v7:i32) loop depth=1:
  JUMP b2(v6)
b2(v9:i32) loop depth=2:
  v10:i32 = CONST 1
  v11:i32 = CONST -1
  v12:i32 = ADD v9 v11
  BRANCH v12 b2(v12) b3()
b3() depth=1:
  v14:i32 = XOR v7 v12
  v15:i32 = ADD v5 v14
  BRANCH v14 b1(v15 v12 v14) b4()
b4():
  RETURN (v15)
`,
);

golden(
  "br_table; a block that traps is cold",
  `(func (param $x i32) (result i32)
     (block $a (block $b (block $c (br_table $a $b $a $c (local.get $x))) unreachable) (return (i32.const 1)))
     (i32.const 2))`,
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  SWITCH v1 b3() b2() b3() b1()
b1() cold:
  TRAP UNREACHABLE
b2():
  v4:i32 = CONST 1
  RETURN (v4)
b3():
  v6:i32 = CONST 2
  RETURN (v6)
`,
);

golden(
  "conditional returns meet in one block; several results",
  `(func (param i32 i64) (result i32 i64) (local.get 0) (local.get 1) (br_if 0 (local.get 0)) (drop) (i64.const 5))`,
  `
func 0 (i32 i64) -> (i32 i64)
b0(v1:i32 v2:i64):
  BRANCH v1 b2(v2) b1()
b1():
  v4:i64 = CONST 5
  JUMP b2(v4)
b2(v6:i64):
  RETURN (v1 v6)
`,
);

golden(
  "guard pages: no check precedes the access",
  "(memory 1) (func (param i32) (result i64) (i64.load32_u offset=70000 (local.get 0)))",
  `
func 0 (i32) -> (i64)
b0(v1:i32):
  v2:i64 = LOAD32_U memory0[v1+70000]
  RETURN (v2)
`,
);

golden(
  "explicit bounds: a check on the same address; other memories are always checked",
  `(memory 1) (memory 1)
   (func (param i32) (f64.store offset=8 (local.get 0) (f64.const 1)) (i32.store8 1 offset=3 (local.get 0) (local.get 0)))`,
  `
func 0 (i32) -> ()
b0(v1:i32):
  v2:f64 = CONST 0x3ff0000000000000
  BOUNDS memory0[v1+8] 8
  STORE memory0[v1+8] v2
  BOUNDS memory1[v1+3] 1
  v6:i64 = LOAD context.sizes[80]
  v7:i64 = EXTEND_U v1
  v8:i64 = ADD v6 v7
  STORE8 pointer.3[v8+3] v1
  RETURN ()
`,
  0,
  { explicitBounds: true },
);

golden(
  "a small copy loads all before it stores",
  "(memory 1) (func (param i32 i32) (memory.copy (local.get 0) (local.get 1) (i32.const 12)))",
  `
func 0 (i32 i32) -> ()
b0(v1:i32 v2:i32):
  v3:i32 = CONST 12
  v4:i64 = EXTEND_U v1
  v5:i64 = CONST 12
  v6:i64 = ADD v4 v5
  v7:i64 = LOAD context.sizes[72]
  v8:i32 = GT_U v6 v7
  TRAP_IF v8 MEMORY_OUT_OF_BOUNDS
  v10:i64 = EXTEND_U v2
  v11:i64 = ADD v10 v5
  v12:i64 = LOAD context.sizes[72]
  v13:i32 = GT_U v11 v12
  TRAP_IF v13 MEMORY_OUT_OF_BOUNDS
  v15:i64 = LOAD memory0[v2]
  v16:i32 = LOAD memory0[v2+8]
  STORE memory0[v1] v15
  STORE memory0[v1+8] v16
  RETURN ()
`,
);

golden(
  "globals: own, imported mutable by pointer, immutable folded",
  `(import "m" "g" (global $cell (mut i64))) (global $own (mut i32) (i32.const 1))
   (global $known i32 (i32.add (i32.const 40) (i32.const 2))) (global $ref funcref (ref.func $f)) (export "f" (func $f))
   (func $f (result funcref) (global.set $cell (i64.const 3)) (global.set $own (i32.add (global.get $own) (global.get $known)))
     (global.get $ref))`,
  `
func 0 () -> (ref)
b0():
  v1:i64 = CONST 3
  v2:i64 = LOAD context.const[80]
  STORE pointer.3[v2] v1
  v4:i32 = LOAD context.4[96]
  v5:i32 = CONST 42
  v6:i32 = ADD v4 v5
  STORE context.4[96] v6
  v8:ref = CONTEXT +144
  RETURN (v8)
`,
);

golden(
  "an indirect call checks index, null and type",
  `(type $t (func (param i32) (result i32 i64))) (table 10 20 funcref)
   (func (param i32) (result i64) (call_indirect (type $t) (i32.const 5) (local.get 0)) (return))`,
  `
func 0 (i32) -> (i64)
sig 0 (i32) -> (i32 i64)
b0(v1:i32):
  v2:i32 = CONST 5
  v3:i32 = LOAD context.sizes[88]
  v4:i32 = GE_U v1 v3
  TRAP_IF v4 UNDEFINED_ELEMENT
  v6:i64 = EXTEND_U v1
  v7:i64 = LOAD context.sizes[80]
  v8:i64 = CONST 3
  v9:i64 = SHL v6 v8
  v10:i64 = ADD v7 v9
  v11:i64 = LOAD pointer.5[v10]
  v12:i32 = LOAD pointer.const[v11+16] UNINITIALIZED_ELEMENT
  v13:i32 = LOAD context.const[128]
  v14:i32 = NE v12 v13
  TRAP_IF v14 INDIRECT_CALL_TYPE
  v16:none = CALL_RECORD (v11 v2) sig0
  v17:i32 = RESULT v16 0
  v18:i64 = RESULT v16 1
  RETURN (v18)
`,
);

golden(
  "an inlined call: positions, sites, returns that meet",
  `(func $abs (param i32) (result i32)
     (if (i32.lt_s (local.get 0) (i32.const 0)) (then (return (i32.sub (i32.const 0) (local.get 0))))) (local.get 0))
   (func (param i32 i32) (result i32) (i32.div_u (call $abs (local.get 1)) (local.get 0)))`,
  `
func 1 (i32 i32) -> (i32)
site 1 parent=0 call=0x35 func=0
b0(v1:i32 v2:i32):
  v3:i32 = CONST 0
  v4:i32 = LT_S v2 v3
  BRANCH v4 b1() b2() @0x25/1
b1():
  v6:i32 = SUB v3 v2
  JUMP b3(v6) @0x2c/1
b2():
  JUMP b3(v2) @0x30/1
b3(v9:i32):
  v10:i32 = DIV_U v9 v1 zero @0x39
  RETURN (v10) @0x3a
`,
  1,
  { optimizations: noneBut({ "inline": true }), positions: true },
);

golden(
  "a function whose only call is followed by unreachable is inlined, and that call is not",
  `(func $refuse (param i32) (global.set $code (local.get 0)))
   (func $at (param i32 i32) (result i32)
     (if (i32.ge_u (local.get 0) (local.get 1)) (then (call $refuse (local.get 0)) (unreachable)))
     (i32.xor (i32.load (local.get 0)) (i32.add (local.get 1) (i32.load (local.get 1)))))
   (func (param i32 i32) (result i32) (call $at (local.get 1) (local.get 0)))
   (memory 1) (global $code (mut i32) (i32.const 0))`,
  `
func 2 (i32 i32) -> (i32)
sig 0 (i32) -> ()
site 1 parent=0 call=0x56 func=1
b0(v1:i32 v2:i32):
  v3:i32 = GE_U v2 v1
  BRANCH v3 b1() b2()
b1() cold:
  CALL f0(v2) sig0
  TRAP UNREACHABLE
b2():
  v7:i32 = LOAD memory0[v2]
  v8:i32 = LOAD memory0[v1]
  v9:i32 = ADD v1 v8
  v10:i32 = XOR v7 v9
  RETURN (v10)
`,
  2,
  { optimizations: noneBut({ "inline": true }) },
);

golden(
  "a recursive function is inlined into itself three times",
  `(func $down (param i32) (result i32)
     (if (result i32) (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 7))))`,
  `
func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
site 1 parent=0 call=0x22 func=0
site 2 parent=1 call=0x22 func=0
site 3 parent=2 call=0x22 func=0
b0(v1:i32):
  BRANCH v1 b1() b11()
b1():
  v3:i32 = CONST 1
  v4:i32 = CONST -1
  v5:i32 = ADD v1 v4
  BRANCH v5 b2() b9()
b2():
  v7:i32 = CONST -2
  v8:i32 = ADD v1 v7
  BRANCH v8 b3() b7()
b3():
  v10:i32 = CONST -3
  v11:i32 = ADD v1 v10
  BRANCH v11 b4() b5()
b4():
  v13:i32 = CONST -4
  v14:i32 = ADD v1 v13
  v15:i32 = CALL f0(v14) sig0
  JUMP b6(v15)
b5():
  v17:i32 = CONST 7
  JUMP b6(v17)
b6(v19:i32):
  JUMP b8(v19)
b7():
  v21:i32 = CONST 7
  JUMP b8(v21)
b8(v23:i32):
  JUMP b10(v23)
b9():
  v25:i32 = CONST 7
  JUMP b10(v25)
b10(v27:i32):
  JUMP b12(v27)
b11():
  v29:i32 = CONST 7
  JUMP b12(v29)
b12(v31:i32):
  RETURN (v31)
`,
  0,
  { optimizations: noneBut({ "inline": true }) },
);

const EVEN_AND_ODD = `(func $even (param i32) (result i32)
     (if (result i32) (local.get 0) (then (call $odd (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 1))))
   (func $odd (param i32) (result i32)
     (if (result i32) (local.get 0) (then (call $even (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 0))))`;

golden(
  "two small functions that call each other are inlined into each other",
  EVEN_AND_ODD,
  `
func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
site 1 parent=0 call=0x23 func=1
site 2 parent=1 call=0x35 func=0
site 3 parent=2 call=0x23 func=1
b0(v1:i32):
  BRANCH v1 b1() b11()
b1():
  v3:i32 = CONST 1
  v4:i32 = CONST -1
  v5:i32 = ADD v1 v4
  BRANCH v5 b2() b9()
b2():
  v7:i32 = CONST -2
  v8:i32 = ADD v1 v7
  BRANCH v8 b3() b7()
b3():
  v10:i32 = CONST -3
  v11:i32 = ADD v1 v10
  BRANCH v11 b4() b5()
b4():
  v13:i32 = CONST -4
  v14:i32 = ADD v1 v13
  v15:i32 = CALL f0(v14) sig0
  JUMP b6(v15)
b5():
  v17:i32 = CONST 0
  JUMP b6(v17)
b6(v19:i32):
  JUMP b8(v19)
b7():
  v21:i32 = CONST 1
  JUMP b8(v21)
b8(v23:i32):
  JUMP b10(v23)
b9():
  v25:i32 = CONST 0
  JUMP b10(v25)
b10(v27:i32):
  JUMP b12(v27)
b11():
  v29:i32 = CONST 1
  JUMP b12(v29)
b12(v31:i32):
  RETURN (v31)
`,
  0,
  { optimizations: noneBut({ "inline": true }) },
);

golden(
  "a caller of two functions that call each other inlines neither",
  `${EVEN_AND_ODD}
   (func (param i32) (result i32) (i32.xor (call $even (local.get 0)) (call $odd (local.get 0))))`,
  `
func 2 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CALL f0(v1) sig0
  v3:i32 = CALL f1(v1) sig0
  v4:i32 = XOR v2 v3
  RETURN (v4)
`,
  2,
  { optimizations: noneBut({ "inline": true }) },
);

golden(
  "a function above 160 bytes and a small one that call each other are not inlined",
  `(func $even (param i32) (result i32)
     ${"nop ".repeat(160)} (call $odd (call $odd (local.get 0))))
   (func $odd (param i32) (result i32) ${"nop ".repeat(30)} (call $even (local.get 0)))`,
  `
func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CALL f1(v1) sig0
  v3:i32 = CALL f1(v2) sig0
  RETURN (v3)
`,
  0,
  { optimizations: noneBut({ "inline": true }) },
);

golden(
  "a recursive function that declares many locals is not inlined",
  `(func $down (param i32) (result i32) (local ${"i64 ".repeat(41)}) (call $down (local.get 0)))`,
  `
func 0 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i64 = CONST 0
  v3:i32 = CALL f0(v1) sig0
  RETURN (v3)
`,
  0,
  { optimizations: noneBut({ "inline": true }) },
);

const ALL_INLINED = `(func $double (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))
   (func (param i32) (result i32) (call $double (local.get 0)))`;

golden(
  "a function whose calls are all inlined has no poll for them",
  ALL_INLINED,
  `
func 1 (i32) -> (i32)
site 1 parent=0 call=0x24 func=0
b0(v1:i32):
  v3:i32 = CONST 1
  v4:i32 = SHL v1 v3
  RETURN (v4)
`,
  1,
  { optimizations: noneBut({ "inline": true, "inline-callfree": true }), interruptible: true },
);

golden(
  "without inline-callfree it still polls",
  ALL_INLINED,
  `
func 1 (i32) -> (i32)
site 1 parent=0 call=0x24 func=0
b0(v1:i32):
  POLL
  v3:i32 = CONST 1
  v4:i32 = SHL v1 v3
  RETURN (v4)
`,
  1,
  { optimizations: noneBut({ "inline": true }), interruptible: true },
);

const KNOWN_TABLE = `(type $t (func (param i32) (result i32))) (table 3 funcref) (elem (i32.const 1) $a $b)
   (func $a (type $t) (unreachable)) (func $b (type $t) (unreachable)) (func $other)`;
const TABLE_KEYS = { optimizations: noneBut({ "immutable-table": true, "immutable-table-type": true }) };

golden(
  "a call through a known table of one type checks index and null",
  `${KNOWN_TABLE} (func (param i32) (result i32) (call_indirect (type $t) (i32.const 7) (local.get 0)))`,
  `
func 3 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 7
  v3:i32 = CONST 3
  v4:i32 = GE_U v1 v3
  TRAP_IF v4 UNDEFINED_ELEMENT
  v6:i64 = EXTEND_U v1
  v7:i64 = LOAD context.const[80]
  v8:i64 = CONST 3
  v9:i64 = SHL v6 v8
  v10:i64 = ADD v7 v9
  v11:i64 = LOAD pointer.5[v10]
  v12:i32 = CALL_RECORD (v11 v2) sig0 UNINITIALIZED_ELEMENT
  RETURN (v12)
`,
  3,
  TABLE_KEYS,
);

golden(
  "a call of a known element is direct; one that must trap is a trap",
  `${KNOWN_TABLE} (func (param i32) (result i32) (drop (call_indirect (type $t) (i32.const 7) (i32.const 2)))
     (if (local.get 0) (then (drop (call_indirect (type $t) (i32.const 7) (i32.const 0)))))
     (call_indirect (type $t) (i32.const 7) (i32.const 3)))`,
  `
func 3 (i32) -> (i32)
sig 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 7
  v3:i32 = CONST 2
  v4:i32 = CALL f1(v2) sig0
  BRANCH v1 b1() b2()
b1() cold:
  v6:i32 = CONST 0
  TRAP UNINITIALIZED_ELEMENT
b2() cold:
  v8:i32 = CONST 7
  v9:i32 = CONST 3
  TRAP UNDEFINED_ELEMENT
`,
  3,
  TABLE_KEYS,
);

for (
  const [kind, fields] of [
    ["exported", '(export "t" (table 0))'],
    ["written", "(func (table.set 0 (i32.const 0) (ref.null func)))"],
    ["filled from outside its bounds", "(elem (i32.const 3) $other)"],
    ["filled from an unknown index on", '(import "m" "g" (global $g i32)) (elem (global.get $g) $other)'],
  ] as const
) {
  Deno.test(`nothing is known of a table that is ${kind}`, () => {
    const call = '(func (export "f") (param i32) (result i32) (call_indirect (type $t) (i32.const 7) (local.get 0)))';
    const [imports, rest] = fields.startsWith("(import")
      ? [fields.split(") (elem")[0] + ")", `(elem${fields.split(") (elem")[1]}`]
      : ["", fields];
    const text = translateText(`${imports} ${KNOWN_TABLE} ${call} ${rest}`, 3, TABLE_KEYS);
    equal(text.includes("INDIRECT_CALL_TYPE"), true, text);
  });
}
