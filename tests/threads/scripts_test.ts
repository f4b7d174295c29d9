/**
 * The commands `thread` and `wait` of test scripts: their Workers run concurrently and see the shared memories they
 * name.
 */
import { deepEqual, equal } from "node:assert/strict";
import { runScript } from "../../engine/script/run_script.ts";

const WAIT_NOTIFY = `
(module $Mem (memory (export "shared") 1 1 shared))
(thread $T1 (shared (module $Mem))
  (register "mem" $Mem)
  (module (memory (import "mem" "shared") 1 10 shared)
    (func (export "run") (result i32) (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
  (assert_return (invoke "run") (i32.const 0)))
(thread $T2 (shared (module $Mem))
  (register "mem" $Mem)
  (module (memory (import "mem" "shared") 1 1 shared)
    (func (export "notify-0") (result i32) (memory.atomic.notify (i32.const 0) (i32.const 0)))
    (func (export "notify-1-while")
      (loop (br_if 0 (i32.ne (i32.const 1) (memory.atomic.notify (i32.const 0) (i32.const 1)))))))
  (assert_return (invoke "notify-0") (i32.const 0))
  (assert_return (invoke "notify-1-while")))
(wait $T1)
(wait $T2)`;

const NESTED = `
(module $Mem (memory (export "m") 1 1 shared) (func (export "at") (result i32) (i32.atomic.load (i32.const 8))))
(thread (shared (module $Mem))
  (register "outer" $Mem)
  (module $Mine (memory (export "m") (import "outer" "m") 1 1 shared)
    (func (export "add") (drop (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))))
  (thread $Inner (shared (module $Mine))
    (register "mine" $Mine)
    (module (memory (import "mine" "m") 1 1 shared)
      (func (export "add") (drop (i32.atomic.rmw.add (i32.const 8) (i32.const 1)))))
    (invoke "add"))
  (invoke "add")
  (wait $Inner)
  (assert_return (invoke "no such function")))
(wait)
(assert_return (invoke "at") (i32.const 2))
(wait $Missing)`;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: one thread of a script wakes another`, async () => {
    const { passed, failures, skipped } = await runScript(WAIT_NOTIFY, { bounds });
    deepEqual(failures, []);
    equal(skipped.size, 0);
    equal(passed, 3);
  });
}

Deno.test("threads of scripts nest; failures in them and unknown threads are failures of the script", async () => {
  const { passed, failures } = await runScript(NESTED);
  equal(passed, 1);
  deepEqual(failures, [
    { line: 14, message: 'unknown export "no such function"' },
    { line: 17, message: "unknown thread $Missing" },
  ]);
});
