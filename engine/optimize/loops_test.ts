/** Loop passes: which operations move out of loops, which globals are promoted, how loops are placed. */
import { ALL, becomes } from "./testing/golden_text.ts";

Deno.test("invariants move in front of the loop, traps and written classes stay", () => {
  becomes(
    `func 0 (i32 i32 f64) -> (f64)
     b0(v1:i32 v2:i32 v3:f64):
       JUMP b1(v1 v3)
     b1(v4:i32 v5:f64) loop depth=1:
       v6:f64 = CONVERT_S v2
       v7:f64 = LOAD context.8[64]
       v8:f64 = LOAD memory0[v2]
       STORE context.9[80] v5
       v9:f64 = LOAD context.9[80]
       v20:f64 = LOAD memory0[v1]
       v10:f64 = FADD v6 v7
       v11:f64 = FMUL v10 v5
       v12:f64 = FADD v8 v11
       v13:f64 = CONST 0x3fb999999999999a
       v14:f64 = FADD v12 v13
       v21:f64 = FADD v20 v14
       v15:i32 = CONST -1
       v16:i32 = ADD v4 v15
       BRANCH v16 b1(v16 v21) b2()
     b2():
       RETURN (v14)`,
    // The load at the top of the header runs unconditionally first: it may move. The one after the store may not.
    `b0(v1:i32 v2:i32 v3:f64):
       v6:f64 = CONVERT_S v2
       v7:f64 = LOAD context.8[64]
       v8:f64 = LOAD memory0[v2]
       v10:f64 = FADD v6 v7
       v13:f64 = CONST 0x3fb999999999999a
       JUMP b1(v1 v3)
     b1(v4:i32 v5:f64) loop depth=1:
       STORE context.9[80] v5
       v20:f64 = LOAD memory0[v1]
       v11:f64 = FMUL v5 v10
       v12:f64 = FADD v8 v11
       v14:f64 = FADD v12 v13
       v21:f64 = FADD v14 v20
       v15:i32 = CONST -1
       v16:i32 = ADD v4 v15
       BRANCH v16 b1(v16 v21) b2()
     b2():
       RETURN (v14)`,
  );
});

Deno.test("an invariant leaves all loops at once, with its constants", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       JUMP b2(v3)
     b2(v4:i32) loop depth=2:
       v5:i32 = CONST 37
       v6:i32 = MUL v2 v5
       v7:i32 = SUB v4 v6
       BRANCH v7 b2(v7) b3()
     b3() depth=1:
       BRANCH v4 b1(v7) b4()
     b4():
       RETURN (v7)`,
    `b0(v1:i32 v2:i32):
       v5:i32 = CONST 37
       v6:i32 = MUL v2 v5
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       JUMP b2(v3)
     b2(v4:i32) loop depth=2:
       v7:i32 = SUB v4 v6
       BRANCH v7 b2(v7) b3()
     b3() depth=1:
       BRANCH v4 b1(v7) b4()
     b4():
       RETURN (v7)`,
  );
});

const COUNTER = `func 0 (i32) -> ()
  sig 0 () -> ()
  b0(v1:i32):
    JUMP b1(v1)
  b1(v2:i32) loop depth=1:
    v3:i32 = LOAD context.8[64]
    v4:i32 = ADD v3 v2
    STORE context.8[64] v4
    v5:i32 = CONST -1
    v6:i32 = ADD v2 v5
    BRANCH v6 b1(v6) b2()
  b2():
    RETURN ()`;

Deno.test("a global that a loop counts with is read once, and still written each time", () => {
  becomes(
    COUNTER,
    `b0(v1:i32):
       v7:i32 = LOAD context.8[64]
       JUMP b1(v1 v7)
     b1(v2:i32 v8:i32) loop depth=1:
       v4:i32 = ADD v2 v8
       STORE context.8[64] v4
       v5:i32 = CONST -1
       v6:i32 = ADD v2 v5
       BRANCH v6 b1(v6 v4) b2()
     b2():
       RETURN ()`,
  );
});

Deno.test("a call in the loop keeps its globals in memory", () => {
  const text = COUNTER.replace("v5:i32 =", "CALL f1() sig0\n    v5:i32 =");
  becomes(text, text.replace("ADD v3 v2", "ADD v2 v3"));
});

Deno.test("a promoted global passes through branches and inner loops", () => {
  becomes(
    `func 0 (i32) -> ()
     b0(v1:i32):
       JUMP b1(v1)
     b1(v2:i32) loop depth=1:
       v3:i64 = LOAD context.8[64]
       BRANCH v1 b2() b3()
     b2() depth=1:
       v4:i64 = CONST 1
       v5:i64 = ADD v3 v4
       STORE context.8[64] v5
       JUMP b3()
     b3() depth=1:
       v6:i64 = LOAD context.8[64]
       STORE context.9[80] v6
       v7:i32 = CONST -1
       v8:i32 = ADD v2 v7
       BRANCH v8 b1(v8) b4()
     b4():
       RETURN ()`,
    `b0(v1:i32):
       v9:i64 = LOAD context.8[64]
       JUMP b1(v1 v9)
     b1(v2:i32 v3:i64) loop depth=1:
       BRANCH v1 b2() b3(v3)
     b2() depth=1:
       v4:i64 = CONST 1
       v5:i64 = ADD v3 v4
       STORE context.8[64] v5
       JUMP b3(v5)
     b3(v6:i64) depth=1:
       STORE context.9[80] v6
       v7:i32 = CONST -1
       v8:i32 = ADD v2 v7
       BRANCH v8 b1(v8 v6) b4()
     b4():
       RETURN ()`,
  );
});

Deno.test("a loop tested at its top is placed with the test at the bottom", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       v4:i32 = LT_S v3 v2
       BRANCH v4 b2() b4()
     b2() depth=1:
       BRANCH v1 b3() b5() likely
     b3() depth=1:
       v5:i32 = CONST 1
       v6:i32 = ADD v3 v5
       JUMP b1(v6)
     b4():
       RETURN (v3)
     b5():
       TRAP UNREACHABLE`,
    `layout b0 b2 b3 b1 b4 b5
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       v4:i32 = GT_S v2 v3
       BRANCH v4 b2() b4()
     b2() depth=1:
       BRANCH v1 b3() b5() likely
     b3() depth=1:
       v5:i32 = CONST 1
       v6:i32 = ADD v3 v5
       JUMP b1(v6)
     b4():
       RETURN (v3)
     b5() cold:
       TRAP UNREACHABLE`,
  );
});

Deno.test("the last block of a loop is placed first if several blocks lead to it", () => {
  const blocks = `b0(v1:i32 v2:i32):
       JUMP b1(v1 v2)
     b1(v3:i32 v4:i32) loop depth=1:
       v5:i32 = GT_S v2 v3
       BRANCH v5 b2() b6()
     b2() depth=1:
       BRANCH v4 b3() b4()
     b3() depth=1:
       STORE context.9[80] v4
       JUMP b5()
     b4() depth=1:
       STORE context.9[80] v3
       JUMP b5()
     b5() depth=1:
       v6:i32 = ADD v3 v4
       JUMP b1(v6 v3)
     b6():
       RETURN (v3)`;
  becomes(`func 0 (i32 i32) -> (i32)\n${blocks}`, `layout b0 b5 b1 b2 b3 b4 b6\n${blocks}`);
});

Deno.test("an early return is placed after its loop", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       v4:i32 = EQ v2 v3
       BRANCH v4 b2() b3()
     b2() depth=1:
       v7:i32 = CONST 9
       RETURN (v7)
     b3() depth=1:
       v5:i32 = CONST -1
       v6:i32 = ADD v3 v5
       BRANCH v6 b1(v6) b4()
     b4():
       RETURN (v3)`,
    `layout b0 b1 b3 b2 b4
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       v4:i32 = EQ v2 v3
       BRANCH v4 b2() b3()
     b2() depth=1:
       v7:i32 = CONST 9
       RETURN (v7)
     b3() depth=1:
       v5:i32 = CONST -1
       v6:i32 = ADD v3 v5
       BRANCH v6 b1(v6) b4()
     b4():
       RETURN (v3)`,
    ALL,
  );
});

Deno.test("a counter that only counts itself is dead, and so is its loop parameter", () => {
  becomes(
    `func 0 (i32) -> ()
     b0(v1:i32):
       JUMP b1(v1 v1)
     b1(v2:i32 v3:i32) loop depth=1:
       v4:i32 = CONST 1
       v5:i32 = ADD v3 v4
       v6:i32 = CONST -1
       v7:i32 = ADD v2 v6
       BRANCH v7 b1(v7 v5) b2()
     b2():
       RETURN ()`,
    `b0(v1:i32):
       JUMP b1(v1)
     b1(v2:i32) loop depth=1:
       v6:i32 = CONST -1
       v7:i32 = ADD v2 v6
       BRANCH v7 b1(v7) b2()
     b2():
       RETURN ()`,
  );
});

Deno.test("jumps to jumps are threaded, straight lines become one block", () => {
  becomes(
    `func 0 (i32) -> (i32)
     b0(v1:i32):
       BRANCH v1 b1() b2()
     b1():
       JUMP b3()
     b2():
       STORE context.8[64] v1
       JUMP b3()
     b3():
       JUMP b4()
     b4():
       RETURN (v1)`,
    `b0(v1:i32):
       BRANCH v1 b2() b1()
     b1():
       STORE context.8[64] v1
       JUMP b2()
     b2():
       RETURN (v1)`,
  );
});

Deno.test("a division stays behind the branch that makes it safe", () => {
  const text = `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       JUMP b1(v1)
     b1(v3:i32) loop depth=1:
       BRANCH v2 b2() b3()
     b2() depth=1:
       v4:i32 = DIV_U v1 v2 zero
       v5:i32 = SUB v3 v4
       BRANCH v5 b1(v5) b4()
     b3():
       TRAP UNREACHABLE
     b4():
       RETURN (v5)`;
  becomes(
    text,
    text.replace(" zero", "").replace("b3():", "b3() cold:").replace(
      "b0(v1:i32 v2",
      "layout b0 b1 b2 b4 b3\n     b0(v1:i32 v2",
    ),
  );
});

Deno.test("a check at the top of a loop moves with its comparison, and the access after it with its address", () => {
  becomes(
    `func 0 (ref i32 i32) -> (i32)
     b0(v1:ref v2:i32 v3:i32):
       v4:i32 = CONST 0
       JUMP b1(v4 v4)
     b1(v5:i32 v6:i32) loop depth=1:
       v7:i32 = LOAD pointer.const[v1+4]
       v8:i32 = GE_U v2 v7
       TRAP_IF v8 ARRAY_OUT_OF_BOUNDS
       v9:i64 = BITCAST v1
       v10:i64 = EXTEND_U v2
       v11:i64 = CONST 2
       v12:i64 = SHL v10 v11
       v13:i64 = ADD v9 v12
       v14:i32 = LOAD pointer.51[v13+8]
       v15:i32 = ADD v6 v14
       v16:i32 = CONST 1
       v17:i32 = ADD v5 v16
       v18:i32 = LT_U v17 v3
       BRANCH v18 b1(v17 v15) b2()
     b2():
       RETURN (v15)`,
    `b0(v1:ref v2:i32 v3:i32):
       v4:i32 = CONST 0
       v7:i32 = LOAD pointer.const[v1+4]
       v8:i32 = GE_U v2 v7
       TRAP_IF v8 ARRAY_OUT_OF_BOUNDS
       v9:i64 = BITCAST v1
       v10:i64 = EXTEND_U v2
       v11:i64 = CONST 2
       v12:i64 = SHL v10 v11
       v13:i64 = ADD v9 v12
       v14:i32 = LOAD pointer.51[v13+8]
       JUMP b1(v4 v4)
     b1(v5:i32 v6:i32) loop depth=1:
       v15:i32 = ADD v6 v14
       v16:i32 = CONST 1
       v17:i32 = ADD v5 v16
       v18:i32 = GT_U v3 v17
       BRANCH v18 b1(v17 v15) b2()
     b2():
       RETURN (v15)`,
  );
});

Deno.test("a check after an effect of the loop stays, and so do its dependents", () => {
  becomes(
    `func 0 (ref i32 i32) -> ()
     b0(v1:ref v2:i32 v3:i32):
       v4:i32 = CONST 0
       JUMP b1(v4)
     b1(v5:i32) loop depth=1:
       STORE memory0[v5] v5
       v8:i32 = GE_U v2 v3
       TRAP_IF v8 ARRAY_OUT_OF_BOUNDS
       v9:i64 = BITCAST v1
       v10:i64 = EXTEND_U v2
       v13:i64 = ADD v9 v10
       v14:i32 = LOAD pointer.51[v13+8]
       STORE memory0[v5+8] v14
       v17:i32 = ADD v5 v14
       JUMP b1(v17)`,
    `b0(v1:ref v2:i32 v3:i32):
       v4:i32 = CONST 0
       v9:i64 = BITCAST v1
       JUMP b1(v4)
     b1(v5:i32) loop depth=1:
       STORE memory0[v5] v5
       v8:i32 = GE_U v2 v3
       TRAP_IF v8 ARRAY_OUT_OF_BOUNDS
       v10:i64 = EXTEND_U v2
       v13:i64 = ADD v9 v10
       v14:i32 = LOAD pointer.51[v13+8]
       STORE memory0[v5+8] v14
       v17:i32 = ADD v5 v14
       JUMP b1(v17)`,
  );
});
