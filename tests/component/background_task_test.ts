/** Tasks that go on after all calls of the host have ended: they run, and do not keep the process alive. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";

const STORE = new URL("../../component/async/component_instance.ts", import.meta.url);

/** A guard against hanging. */
const TIMEOUT = 120_000;

/** The output of a program that pumps a store whose tasks are always ready. */
async function outputOf(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["eval", "--no-check", `import { Store } from ${JSON.stringify(STORE.href)}; ${program}`],
    { timeout: TIMEOUT },
  );
  return stdout;
}

Deno.test("a task that yields forever does not keep the process alive", async () => {
  const program = `let steps = 0;
    const store = new Store(true, true, () => { steps++; return true; });
    store.pump();
    store.pump();
    console.log(steps);`;
  assert.equal(await outputOf(program), "20000\n");
});

Deno.test("a call that waits for such a task keeps the process alive, and two pumps share a turn", async () => {
  const program = `let steps = 0;
    const call = { reject: () => {} };
    const store = new Store(true, true, () => {
      if (++steps === 50_000) { store.calls.delete(call); console.log(steps); }
      return true;
    });
    store.calls.add(call);
    store.pump();
    store.pump();`;
  assert.equal(await outputOf(program), "50000\n");
});
