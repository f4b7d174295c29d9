/**
 * Branches on constants that were passed to their block, by IR text; and a chain of a thousand of them stays linear.
 */
import { Scratch } from "./scratch.ts";
import { ok } from "node:assert/strict";
import { parseFunction } from "../ir/parse.ts";
import { printFunction } from "../ir/print.ts";
import { verifyFunction } from "../ir/verify.ts";
import { becomes } from "./testing/golden_text.ts";
import { threadJumps } from "./jump_threading.ts";

Deno.test("an edge with a constant goes to its target, the other branches itself and knows the tested condition", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       BRANCH v1 b1() b2()
     b1():
       v3:i32 = CONST 5
       v4:i32 = LT_S v2 v3
       JUMP b3(v4)
     b2():
       v5:i32 = CONST 0
       JUMP b3(v5)
     b3(v6:i32):
       BRANCH v6 b4() b5()
     b4():
       v7:i32 = CONST 5
       v8:i32 = LT_S v2 v7
       v9:i32 = ADD v8 v1
       RETURN (v9)
     b5():
       v10:i32 = CONST 7
       RETURN (v10)`,
    `b0(v1:i32 v2:i32):
       BRANCH v1 b1() b3()
     b1():
       v3:i32 = CONST 5
       v4:i32 = LT_S v2 v3
       BRANCH v4 b2() b3()
     b2():
       v9:i32 = ADD v1 v4
       RETURN (v9)
     b3():
       v10:i32 = CONST 7
       RETURN (v10)`,
  );
});

Deno.test("negated branches and chains, with the edges' arguments", () => {
  becomes(
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = CONST 1
       BRANCH v1 b2(v3) b1()
     b1():
       JUMP b2(v2)
     b2(v4:i32):
       JUMP b3(v4 v2)
     b3(v5:i32 v6:i32):
       v7:i32 = CONST 0
       v8:i32 = EQ v5 v7
       BRANCH v8 b4(v6) b5(v5)
     b4(v9:i32):
       RETURN (v9)
     b5(v10:i32):
       v11:i32 = ADD v10 v1
       RETURN (v11)`,
    `b0(v1:i32 v2:i32):
       v3:i32 = CONST 1
       BRANCH v1 b3(v3) b1()
     b1():
       BRANCH v2 b3(v2) b2()
     b2():
       RETURN (v2)
     b3(v10:i32):
       v11:i32 = ADD v1 v10
       RETURN (v11)`,
  );
});

const STAYS: readonly (readonly [why: string, text: string])[] = [
  [
    "a parameter that is used after the block",
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = CONST 0
       BRANCH v1 b2(v3) b1()
     b1():
       JUMP b2(v2)
     b2(v4:i32):
       BRANCH v4 b3() b4()
     b3():
       RETURN (v4)
     b4():
       RETURN (v1)`,
  ],
  [
    "a loop's header",
    `func 0 (i32) -> (i32)
     b0(v1:i32):
       v2:i32 = CONST 1
       JUMP b1(v2)
     b1(v3:i32) loop:
       BRANCH v3 b2() b3()
     b2():
       JUMP b1(v1)
     b3():
       RETURN (v1)`,
  ],
  [
    "the comparison is passed on",
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = CONST 0
       BRANCH v1 b1() b2(v3)
     b1():
       JUMP b2(v2)
     b2(v4:i32):
       v5:i32 = CONST 0
       v6:i32 = EQ v4 v5
       BRANCH v6 b3() b4(v6)
     b3():
       RETURN (v2)
     b4(v7:i32):
       RETURN (v7)`,
  ],
  [
    "no constant",
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       BRANCH v1 b1() b2()
     b1():
       JUMP b3(v1)
     b2():
       JUMP b3(v2)
     b3(v3:i32):
       BRANCH v3 b4() b5()
     b4():
       RETURN (v1)
     b5():
       RETURN (v2)`,
  ],
  [
    "something else in the block",
    `func 0 (i32 i32) -> (i32)
     b0(v1:i32 v2:i32):
       v3:i32 = CONST 0
       BRANCH v1 b2(v3) b1()
     b1():
       JUMP b2(v2)
     b2(v4:i32):
       v5:i32 = ADD v1 v2
       BRANCH v4 b3() b4()
     b3():
       RETURN (v5)
     b4():
       RETURN (v1)`,
  ],
];

for (const [why, text] of STAYS) {
  Deno.test(`nothing is threaded: ${why}`, () => {
    const f = parseFunction(text);
    const before = printFunction(f);
    ok(threadJumps(f, new Scratch()) === 0 && printFunction(f) === before);
  });
}

Deno.test("a thousand merge points with a hundred arguments each do not multiply", () => {
  const width = 100, count = 1000;
  const values = Array.from({ length: width }, (_, n) => `v${n + 1}`);
  const lines = [`func 0 (${values.map(() => "i32").join(" ")}) -> (i32)`];
  lines.push(`b0(${values.map((v) => `${v}:i32`).join(" ")}):`, `v${width + 1}:i32 = CONST 0`, `JUMP b1()`);
  let id = width + 2;
  const last = count * 2 + 1;
  // Each pair of blocks: an edge past the branch with a constant, and one to it with a value.
  for (let n = 0; n < count; n++) {
    const k = n * 2 + 1;
    lines.push(`b${k}():`, `BRANCH v1 b${k + 1}(v${width + 1}) b${k + 1}(v2)`);
    lines.push(
      `b${k + 1}(v${id}:i32):`,
      `BRANCH v${id} b${k + 2 === last ? last + 1 : k + 2}() b${last}(${values.join(" ")})`,
    );
    id++;
  }
  const params = values.map(() => `v${id++}`);
  lines.push(`b${last}(${params.map((v) => `${v}:i32`).join(" ")}):`, `RETURN (${params[0]})`);
  lines.push(`b${last + 1}():`, "RETURN (v1)");
  const f = parseFunction(lines.join("\n"));
  const before = f.poolCount;
  ok(threadJumps(f, new Scratch()) > 0);
  verifyFunction(f);
  ok(f.poolCount - before < f.count + 256 + width, `${f.poolCount - before} arguments more`);
});
