/**
 * The IR of structures, arrays and casts: which checks are emitted, which the static type makes redundant, and the
 * alias classes of fields.
 */
import { equal } from "node:assert/strict";
import { translateText } from "../../tests/support/translate_text.ts";

const TYPES = `
  (type $base (sub (struct (field $x (mut i32)))))
  (type $leaf (sub final $base (struct (field $x (mut i32)) (field $y i64))))
  (type $mid (sub $base (struct (field $x (mut i32)) (field $z (mut i32)))))
  (type $bytes (array (mut i8)))`;

function check(name: string, functions: string, expected: string): void {
  Deno.test(name, () => equal(translateText(`(module ${TYPES} ${functions})`), expected.replace(/^\n/, "")));
}

check(
  "a field has the class of the type that declares it; null faults",
  `(func (param (ref null $leaf) (ref null $mid)) (result i32)
    (struct.set $mid $x (local.get 1) (i32.const 7))
    (struct.get $leaf $x (local.get 0)))`,
  `
func 0 (ref ref) -> (i32)
b0(v1:ref v2:ref):
  v3:i32 = CONST 7
  STORE struct.8[v2+8] v3
  v5:i32 = LOAD struct.8[v1+8] NULL_STRUCTURE
  RETURN (v5)
`,
);
check(
  "a structure is made in place; zeros are not stored",
  `(func (param i64) (result (ref $leaf)) (struct.new $leaf (i32.const 0) (local.get 0)))`,
  `
func 0 (i64) -> (ref)
b0(v1:i64):
  v2:i32 = CONST 0
  v3:i64 = LOAD32_U context.const[116]
  v4:i64 = CONST 24
  v5:ref = GC_ALLOC v4
  STORE pointer.const[v5] v3
  STORE struct.const[v5+16] v1
  RETURN (v5)
`,
);
check(
  "a cast that the static type proves emits nothing; one to a final type compares ids",
  `(func (param (ref $leaf) (ref $base)) (result (ref $leaf))
    (drop (ref.cast (ref $base) (local.get 0)))
    (ref.cast (ref $leaf) (local.get 1)))`,
  `
func 0 (ref ref) -> (ref)
b0(v1:ref v2:ref):
  v3:i32 = LOAD pointer.const[v2]
  v4:i32 = LOAD context.const[116]
  v5:i32 = NE v3 v4
  TRAP_IF v5 CAST_FAILURE
  RETURN (v2)
`,
);
check(
  "from anyref: null, tag, then the display",
  `(func (param anyref) (result i32) (ref.test (ref $mid) (local.get 0)))`,
  `
func 0 (ref) -> (i32)
b0(v1:ref):
  v2:ref = CONST null
  v3:i32 = EQ v1 v2
  v4:i32 = CONST 0
  BRANCH v3 b3(v4) b1()
b1():
  v6:i64 = BITCAST v1
  v7:i32 = WRAP v6
  v8:i32 = CONST 3
  v9:i32 = AND v7 v8
  BRANCH v9 b3(v4) b2()
b2():
  v11:i32 = LOAD pointer.const[v1]
  v12:i32 = LOAD context.const[120]
  v13:i64 = LOAD context.const[32]
  v14:i64 = LOAD pointer.const[v13+512]
  v15:i64 = CONST 6
  v16:i64 = EXTEND_U v11
  v17:i64 = SHL v16 v15
  v18:i64 = ADD v14 v17
  v19:i32 = LOAD pointer.const[v18+28]
  v20:i32 = EQ v19 v12
  JUMP b3(v20)
b3(v22:i32):
  RETURN (v22)
`,
);
check(
  "where null fails a cast, reading the header finds it",
  `(func (param (ref null $base)) (result (ref $leaf)) (ref.cast (ref $leaf) (local.get 0)))`,
  `
func 0 (ref) -> (ref)
b0(v1:ref):
  v2:i32 = LOAD pointer.const[v1] CAST_FAILURE
  v3:i32 = LOAD context.const[116]
  v4:i32 = NE v2 v3
  TRAP_IF v4 CAST_FAILURE
  RETURN (v1)
`,
);
check(
  "an element: length and null in one load, index, address",
  `(func (param (ref null $bytes) i32) (result i32) (array.get_s $bytes (local.get 0) (local.get 1)))`,
  `
func 0 (ref i32) -> (i32)
b0(v1:ref v2:i32):
  v3:i32 = LOAD pointer.const[v1+4] NULL_ARRAY
  v4:i32 = GE_U v2 v3
  TRAP_IF v4 ARRAY_OUT_OF_BOUNDS
  v6:i64 = BITCAST v1
  v7:i64 = EXTEND_U v2
  v8:i64 = CONST 0
  v9:i64 = ADD v6 v7
  v10:i32 = LOAD8_S pointer.10[v9+8]
  RETURN (v10)
`,
);
check(
  "i31: tag and back",
  `(func (param i32) (result i32) (i31.get_s (ref.i31 (local.get 0))))`,
  `
func 0 (i32) -> (i32)
b0(v1:i32):
  v2:i32 = CONST 1
  v3:i32 = SHL v1 v2
  v4:i32 = OR v3 v2
  v5:i64 = EXTEND_U v4
  v6:ref = BITCAST v5
  v7:ref = CONST null
  v8:i32 = EQ v6 v7
  TRAP_IF v8 NULL_I31
  v10:i32 = SHR_S v4 v2
  RETURN (v10)
`,
);
