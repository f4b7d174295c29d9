/** The verifier accepts good functions and names the fault of bad ones. */
import { throws } from "node:assert/strict";
import { parseFunction } from "./parse.ts";
import { verifyFunction } from "./verify.ts";

const GOOD = `func 0 (i32 i64) -> (i32)
sig 0 (i32) -> (i32 i64)
b0(v1:i32 v2:i64):
  v3:i32 = CONST 0
  JUMP b1(v3)
b1(v4:i32) loop depth=1:
  v5:none = CALL f1(v4) sig0
  v6:i32 = RESULT v5 0
  v7:i64 = RESULT v5 1
  v8:i32 = LT_U v6 v1
  BRANCH v8 b1(v6) b2()
b2():
  STORE memory0[v4] v7
  RETURN (v6)
`;

Deno.test("a good function is accepted", () => verifyFunction(parseFunction(GOOD)));

for (
  const [fault, from, to, message] of [
    ["a use before its definition", "v8:i32 = LT_U v6 v1", "v8:i32 = LT_U v6 v8", /v8 of b1 does not dominate/],
    ["a type mix", "v8:i32 = LT_U v6 v1", "v8:i32 = LT_U v6 v7", /integers of one type/],
    ["a missing edge argument", "JUMP b1(v3)", "JUMP b1(v2)", /argument 0 is v2:i64/],
    ["an unmarked loop", ") loop depth=1:", ") depth=1:", /heads a loop and is not marked/],
    ["a loop of depth 0", ") loop depth=1:", ") loop:", /depth 0/],
    ["a result too many", "v7:i64 = RESULT v5 1", "v7:i64 = RESULT v5 2", /no such result/],
    ["an undefined value", "RETURN (v6)", "RETURN (v99)", /does not exist/],
    ["a wrong return", "RETURN (v6)", "RETURN (v7)", /returned 0 should be i32/],
    ["a terminator in the middle", "v8:i32 = LT_U v6 v1", "TRAP UNREACHABLE", /exactly the last instruction/],
    ["a jump to the entry", "BRANCH v8 b1(v6) b2()", "BRANCH v8 b0(v6 v7) b2()", /leads to b0/],
    ["an unreachable block", "BRANCH v8 b1(v6) b2()", "JUMP b1(v6)", /b2 has no predecessor/],
    ["a wrong signature", "(v4) sig0", "(v4) sig3", /signature 3 does not exist/],
    ["a wrong argument", "CALL f1(v4)", "CALL f1(v2)", /argument 0 should be i32/],
    ["wrong parameters", "func 0 (i32 i64)", "func 0 (i32 i32)", /parameter 1 should be i32/],
    ["a float address", "STORE memory0[v4] v7", "STORE pointer[v4] v7", /a pointer must be/],
  ] as const
) {
  Deno.test(`a function with ${fault} is refused`, () => {
    throws(() => verifyFunction(parseFunction(GOOD.replace(from, to)), "a test"), { name: "Bug", message });
  });
}
