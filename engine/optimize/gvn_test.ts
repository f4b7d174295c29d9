/**
 * GVN, by IR text: which values are equal, which stores are forwarded, which checks and branches are removed, and
 * which must stay.
 */
import { ALL, becomes } from "./testing/golden_text.ts";

Deno.test("equal pure values become one across blocks, commuted ones too", () => {
  becomes(
    `func 0 (i32 i32) -> (i32 i32)
     b0(v1:i32 v2:i32):
       v3:i32 = ADD v1 v2
       BRANCH v1 b1() b2()
     b1():
       v4:i32 = ADD v2 v1
       RETURN (v3 v4)
     b2():
       v5:i32 = SUB v1 v2
       v6:i32 = SUB v2 v1
       RETURN (v5 v6)`,
    `b0(v1:i32 v2:i32):
       v3:i32 = ADD v1 v2
       BRANCH v1 b1() b2()
     b1():
       RETURN (v3 v3)
     b2():
       v5:i32 = SUB v1 v2
       v6:i32 = SUB v2 v1
       RETURN (v5 v6)`,
  );
});

Deno.test("a value of one arm is not used in the other", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       BRANCH v1 b1() b2()
     b1():
       v3:i32 = MUL v1 v2
       RETURN (v3)
     b2():
       v4:i32 = MUL v1 v2
       RETURN (v4)`,
    `b0(v1:i32 v2:i32):
       BRANCH v1 b1() b2()
     b1():
       v3:i32 = MUL v1 v2
       RETURN (v3)
     b2():
       v4:i32 = MUL v1 v2
       RETURN (v4)`,
  );
});

Deno.test("a division is removed when an equal one dominates it, and keeps its place otherwise", () => {
  becomes(
    `func 0 (i32 i32) -> (i32 i32)
     b0(v1:i32 v2:i32):
       v3:i32 = DIV_U v1 v2 zero
       v4:i32 = DIV_U v1 v2 zero
       v5:i32 = REM_U v1 v2 zero
       v6:i32 = DIV_S v1 v2 zero overflow
       RETURN (v4 v5)`,
    // The remainder's divisor is known to be nonzero now; the unused signed division may still overflow.
    `b0(v1:i32 v2:i32):
       v3:i32 = DIV_U v1 v2 zero
       v5:i32 = REM_U v1 v2
       v6:i32 = DIV_S v1 v2 overflow
       RETURN (v3 v5)`,
  );
});

Deno.test("branches constrain a divisor", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = CONST 0
       v4:i32 = EQ v2 v3
       BRANCH v4 b1() b2()
     b1():
       RETURN (v1)
     b2():
       v5:i32 = DIV_U v1 v2 zero
       RETURN (v5)`,
    `b0(v1:i32 v2:i32):
       BRANCH v2 b2() b1()
     b1():
       RETURN (v1)
     b2():
       v5:i32 = DIV_U v1 v2
       RETURN (v5)`,
  );
});

Deno.test("a condition known from a dominating branch decides the next, and dead blocks are removed", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = LT_S v1 v2
       BRANCH v3 b1() b4()
     b1():
       v4:i32 = LT_S v1 v2
       BRANCH v4 b2() b3()
     b2():
       RETURN (v1)
     b3():
       v5:i32 = CONST 7
       RETURN (v5)
     b4():
       BRANCH v3 b5() b6()
     b5():
       TRAP UNREACHABLE
     b6():
       RETURN (v2)`,
    `b0(v1:i32 v2:i32):
       v3:i32 = LT_S v1 v2
       BRANCH v3 b1() b2()
     b1():
       RETURN (v1)
     b2():
       RETURN (v2)`,
  );
});

Deno.test("a case of a switch knows its value", () => {
  becomes(
    `func 0 (i32) -> (i32)
     b0(v1:i32):
       SWITCH v1 b1() b2() b3()
     b1():
       v2:i32 = CONST 0
       v3:i32 = EQ v1 v2
       RETURN (v3)
     b2():
       v4:i32 = CONST 5
       v5:i32 = EQ v1 v4
       RETURN (v5)
     b3():
       RETURN (v1)`,
    `b0(v1:i32):
       SWITCH v1 b1() b2() b3()
     b1():
       v7:i32 = CONST 1
       RETURN (v7)
     b2():
       v9:i32 = CONST 0
       RETURN (v9)
     b3():
       RETURN (v1)`,
  );
});

Deno.test("loads are reused until their class is written, and stores are forwarded", () => {
  becomes(
    `func 0 (i32 i32 f32) -> (i32 i32 i32 i32 f32)
     b0(v1:i32 v2:i32 v3:f32):
       v4:i32 = LOAD memory0[v1+4]
       STORE context.8[64] v2
       v5:i32 = LOAD memory0[v1+4]
       v6:i32 = LOAD context.8[64]
       STORE memory0[v1+8] v3
       v7:i32 = LOAD memory0[v1+4]
       v8:i32 = LOAD memory0[v1+8]
       STORE memory0[v2] v2
       v9:f32 = LOAD memory0[v1+8]
       v10:i32 = ADD v5 v7
       RETURN (v4 v6 v10 v8 v9)`,
    `b0(v1:i32 v2:i32 v3:f32):
       v4:i32 = LOAD memory0[v1+4]
       STORE context.8[64] v2
       STORE memory0[v1+8] v3
       v8:i32 = BITCAST v3
       STORE memory0[v2] v2
       v9:f32 = LOAD memory0[v1+8]
       v10:i32 = ADD v4 v4
       RETURN (v4 v2 v10 v8 v9)`,
  );
});

Deno.test("without store-forward stores are not forwarded, but loads are still reused", () => {
  becomes(
    `func 0 (i32 i32) -> (i32 i32)
     b0(v1:i32 v2:i32):
       STORE memory0[v1] v2
       v3:i32 = LOAD memory0[v1]
       v4:i32 = LOAD memory0[v1]
       RETURN (v3 v4)`,
    `b0(v1:i32 v2:i32):
       STORE memory0[v1] v2
       v3:i32 = LOAD memory0[v1]
       RETURN (v3 v3)`,
    { ...ALL, "store-forward": false },
  );
});

Deno.test("narrow stores are forwarded as a narrow load extends them", () => {
  becomes(
    `func 0 (i32 i32 i64) -> (i32 i32 i64 i32)
     b0(v1:i32 v2:i32 v3:i64):
       STORE8 memory0[v1] v2
       v4:i32 = LOAD8_S memory0[v1]
       v5:i32 = LOAD8_U memory0[v1]
       STORE32 memory0[v1+8] v3
       v6:i64 = LOAD32_S memory0[v1+8]
       v7:i32 = LOAD memory0[v1+8]
       RETURN (v4 v5 v6 v7)`,
    `b0(v1:i32 v2:i32 v3:i64):
       STORE8 memory0[v1] v2
       v4:i32 = EXTEND8_S v2
       v10:i32 = CONST 255
       v5:i32 = AND v2 v10
       STORE32 memory0[v1+8] v3
       v6:i64 = EXTEND32_S v3
       v7:i32 = WRAP v3
       RETURN (v4 v5 v6 v7)`,
  );
});

Deno.test("a call forgets memory and globals, not constants", () => {
  becomes(
    `func 0 (i32) -> (i32 i64)
     sig 0 () -> ()
     b0(v1:i32):
       v2:i32 = LOAD memory0[v1]
       v3:i64 = LOAD context.const[80]
       CALL f1() sig0
       v4:i32 = LOAD memory0[v1]
       v5:i64 = LOAD context.const[80]
       v6:i32 = SUB v2 v4
       v7:i64 = ADD v3 v5
       RETURN (v6 v7)`,
    `b0(v1:i32):
       v2:i32 = LOAD memory0[v1]
       v3:i64 = LOAD context.const[80]
       CALL f1() sig0
       v4:i32 = LOAD memory0[v1]
       v6:i32 = SUB v2 v4
       v7:i64 = ADD v3 v3
       RETURN (v6 v7)`,
  );
});

Deno.test("a merge point keeps classes that no path wrote; a loop header forgets those that its loop writes", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = LOAD context.8[64]
       v4:i32 = LOAD context.9[80]
       BRANCH v1 b1() b2()
     b1():
       STORE context.9[80] v2
       JUMP b2()
     b2():
       v5:i32 = LOAD context.8[64]
       v6:i32 = LOAD context.9[80]
       v7:i32 = SUB v3 v5
       v8:i32 = SUB v4 v6
       v9:i32 = ADD v7 v8
       RETURN (v9)`,
    `b0(v1:i32 v2:i32):
       v4:i32 = LOAD context.9[80]
       BRANCH v1 b1() b2()
     b1():
       STORE context.9[80] v2
       JUMP b2()
     b2():
       v6:i32 = LOAD context.9[80]
       v8:i32 = SUB v4 v6
       RETURN (v8)`,
  );
});

Deno.test("a store is removed if the next one overwrites it unobserved, or if it stores the value that is there", () => {
  becomes(
    `func 0 (i32 i32) -> ()
     b0(v1:i32 v2:i32):
       STORE memory0[v1] v1
       v3:i32 = ADD v1 v2
       STORE memory0[v1] v3
       STORE memory0[v1] v3
       v4:i32 = LOAD memory0[v2]
       STORE memory0[v2] v4
       RETURN ()`,
    `b0(v1:i32 v2:i32):
       v3:i32 = ADD v1 v2
       STORE memory0[v1] v3
       v4:i32 = LOAD memory0[v2]
       RETURN ()`,
  );
});

Deno.test("a store is kept when something between may trap", () => {
  becomes(
    `func 0 (i32 i32) -> ()
     b0(v1:i32 v2:i32):
       STORE context.8[64] v1
       STORE memory0[v2] v1
       STORE context.8[64] v2
       RETURN ()`,
    `b0(v1:i32 v2:i32):
       STORE context.8[64] v1
       STORE memory0[v2] v1
       STORE context.8[64] v2
       RETURN ()`,
  );
});

const CHECKS = `func 0 (i32 i32) -> (i32)
  sig 0 () -> ()
  b0(v1:i32 v2:i32):
    BOUNDS memory0[v1+8] 4
    BOUNDS memory0[v2] 8
    CALL f1() sig0
    BOUNDS memory0[v1] 4
    BOUNDS memory0[v2] 8
    BOUNDS memory0[v2+1] 8
    BOUNDS memory1[v2] 8
    RETURN (v1)`;

Deno.test("a bounds check is removed when one that covers it dominates, across calls too", () => {
  becomes(
    CHECKS,
    `b0(v1:i32 v2:i32):
       BOUNDS memory0[v1+8] 4
       BOUNDS memory0[v2] 8
       CALL f1() sig0
       BOUNDS memory0[v2+1] 8
       BOUNDS memory1[v2] 8
       RETURN (v1)`,
  );
  becomes(
    CHECKS,
    `b0(v1:i32 v2:i32):
       BOUNDS memory0[v1+8] 4
       BOUNDS memory0[v2] 8
       CALL f1() sig0
       BOUNDS memory0[v1] 4
       BOUNDS memory0[v2] 8
       BOUNDS memory0[v2+1] 8
       BOUNDS memory1[v2] 8
       RETURN (v1)`,
    { ...ALL, "bounds-facts": false },
  );
});

Deno.test("a constant moves from an address into the offset only where the sum cannot wrap", () => {
  becomes(
    `func 0 (i32) -> (i32 i32)
     b0(v1:i32):
       v2:i32 = CONST 255
       v3:i32 = CONST 16
       v4:i32 = AND v1 v2
       v5:i32 = ADD v4 v3
       v6:i32 = ADD v1 v3
       BOUNDS memory0[v5+4] 4
       v7:i32 = LOAD memory0[v5+4]
       v8:i32 = LOAD memory0[v6+4]
       RETURN (v7 v8)`,
    `b0(v1:i32):
       v2:i32 = CONST 255
       v3:i32 = CONST 16
       v4:i32 = AND v1 v2
       v6:i32 = ADD v1 v3
       BOUNDS memory0[v4+20] 4
       v7:i32 = LOAD memory0[v4+20]
       v8:i32 = LOAD memory0[v6+4]
       RETURN (v7 v8)`,
  );
});

Deno.test("a trap that is certain ends its block", () => {
  becomes(
    `func 0 (i32) -> (i32)
     b0(v1:i32):
       STORE context.8[64] v1
       v2:i32 = CONST 3
       TRAP_IF v2 UNDEFINED_ELEMENT
       STORE context.8[64] v2
       JUMP b1()
     b1():
       RETURN (v1)`,
    `b0(v1:i32):
       STORE context.8[64] v1
       TRAP UNDEFINED_ELEMENT`,
  );
});

Deno.test("nothing is forwarded, merged or overwritten across an atomic access or a fence", () => {
  for (const barrier of ["v9:i32 = ATOMIC_LOAD memory0[v2] 4", "ATOMIC_STORE memory0[v2] 4 v2", "FENCE"]) {
    becomes(
      `func 0 (i32 i32) -> (i32 i32 i32)
       b0(v1:i32 v2:i32):
         v3:i32 = LOAD memory0[v1+8]
         STORE memory0[v1] v2
         ${barrier}
         v4:i32 = LOAD memory0[v1]
         v5:i32 = LOAD memory0[v1+8]
         STORE memory0[v1] v1
         RETURN (v3 v4 v5)`,
      `b0(v1:i32 v2:i32):
         v3:i32 = LOAD memory0[v1+8]
         STORE memory0[v1] v2
         ${barrier}
         v4:i32 = LOAD memory0[v1]
         v5:i32 = LOAD memory0[v1+8]
         STORE memory0[v1] v1
         RETURN (v3 v4 v5)`,
    );
  }
});

Deno.test("equal atomic operations stay two, and unused ones stay", () => {
  const text = `b0(v1:i32 v2:i32):
       v3:i32 = ATOMIC_LOAD memory0[v1] 4
       v4:i32 = ATOMIC_LOAD memory0[v1] 4
       v5:i32 = ATOMIC_ADD memory0[v1] 4 v2
       v6:i32 = ATOMIC_ADD memory0[v1] 4 v2
       v7:i32 = ATOMIC_CMPXCHG memory0[v1+4] 1 v3 v2
       RETURN (v4)`;
  becomes(`func 0 (i32 i32) -> (i32)\n${text}`, text);
});

Deno.test("facts about lengths outlive atomic accesses", () => {
  becomes(
    `func 0 (i32 i64) -> (i64 i64)
     b0(v1:i32 v2:i64):
       v3:i64 = LOAD context.sizes[72]
       v4:i64 = ATOMIC_LOAD pointer.7[v2] 8
       v5:i64 = LOAD context.sizes[72]
       RETURN (v3 v5)`,
    `b0(v1:i32 v2:i64):
       v3:i64 = LOAD context.sizes[72]
       v4:i64 = ATOMIC_LOAD pointer.7[v2] 8
       RETURN (v3 v3)`,
  );
});

Deno.test("a comparison decides its mirror image", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = LE_U v2 v1
       BRANCH v3 b1() b2()
     b1():
       TRAP UNREACHABLE
     b2():
       v4:i32 = GE_U v1 v2
       TRAP_IF v4 ARRAY_OUT_OF_BOUNDS
       v5:i32 = LT_U v1 v2
       RETURN (v5)`,
    `layout b0 b2 b1
     b0(v1:i32 v2:i32):
       v3:i32 = GE_U v1 v2
       BRANCH v3 b1() b2()
     b1() cold:
       TRAP UNREACHABLE
     b2():
       v5:i32 = CONST 1
       RETURN (v5)`,
  );
});
