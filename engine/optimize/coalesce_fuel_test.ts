/** Fuel charges: which of them owe their units, and which take the units that others owe. */
import { equal } from "node:assert/strict";
import { parseFunction } from "../ir/parse.ts";
import { printFunction } from "../ir/print.ts";
import { verifyFunction } from "../ir/verify.ts";
import { coalesceFuel } from "./coalesce_fuel.ts";

/** The charges of the function with these blocks once they are merged, in order. */
function merged(blocks: string): string {
  const f = parseFunction(`func 0 (i32 i64) -> (i32)
sig 0 () -> ()
b0(v1:i32 v2:i64):
  v3:i64 = CONST 1
  v4:i64 = CONST 10
  v5:i64 = CONST 100
${blocks}`);
  coalesceFuel(f);
  verifyFunction(f);
  return [...printFunction(f).matchAll(/CHARGE (.*)/g)].map(([, text]) => text).join(" · ");
}

Deno.test("charges in a row owe, and the last takes all", () => {
  equal(merged("  CHARGE v3\n  CHARGE v4\n  CHARGE v5\n  RETURN (v1)"), "v3 owes · v4 after 1 owes · v5 after 11");
});

Deno.test("nothing is owed at an instruction with an effect", () => {
  const row = (effect: string) => merged(`  CHARGE v3\n${effect}\n  CHARGE v4\n  RETURN (v1)`);
  equal(row("  v9:i32 = ADD v1 v1"), "v3 owes · v4 after 1");
  equal(row("  v9:i32 = LOAD context.const[64]"), "v3 owes · v4 after 1");
  equal(row("  STORE memory0[v1] v1"), "v3 · v4");
  equal(row("  v9:i32 = LOAD memory0[v1]"), "v3 · v4");
  equal(row("  v9:i32 = DIV_U v1 v1 zero"), "v3 · v4");
  equal(row("  CALL f1() sig0"), "v3 · v4");
  equal(row("  POLL"), "v3 · v4");
  equal(row("  TRAP_IF v1 UNREACHABLE"), "v3 · v4");
  equal(row("  CHARGE v2"), "v3 · v2 · v4");
});

Deno.test("owed units pass to successors if all of them have one predecessor and begin with a charge", () => {
  const ways = (one: string, other: string) =>
    merged(`  CHARGE v3
  BRANCH v1 b1() b2()
b1():
${one}
b2():
${other}`);
  equal(ways("  CHARGE v4\n  RETURN (v1)", "  CHARGE v5\n  TRAP UNREACHABLE"), "v3 owes · v4 after 1 · v5 after 1");
  equal(ways("  CHARGE v4\n  RETURN (v1)", "  RETURN (v1)"), "v3 · v4");
  equal(ways("  STORE memory0[v1] v1\n  CHARGE v4\n  RETURN (v1)", "  CHARGE v5\n  RETURN (v1)"), "v3 · v4 · v5");
  // b2 has two predecessors.
  equal(ways("  CHARGE v4\n  JUMP b2()", "  CHARGE v5\n  RETURN (v1)"), "v3 · v4 · v5");
});

Deno.test("nothing is owed around a loop", () => {
  equal(
    merged(`  CHARGE v3
  JUMP b1()
b1() loop depth=1:
  CHARGE v4
  BRANCH v1 b2() b3()
b2() depth=1:
  CHARGE v5
  JUMP b1()
b3():
  CHARGE v3
  RETURN (v1)`),
    "v3 · v4 owes · v5 after 10 · v3 after 10",
  );
});

Deno.test("a sum that backends might not compare with is not owed", () => {
  equal(
    merged(`  v6:i64 = CONST 200000000
  CHARGE v6
  CHARGE v6
  CHARGE v3
  RETURN (v1)`),
    "v6 owes · v6 after 200000000 · v3",
  );
});
