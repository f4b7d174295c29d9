/**
 * The place where the helper thread is started by a program whose calls have near deadlines. In: a program with a clock
 * that counts its readings, and a Worker that notes where it is made. Its code is deterministic, which native threads
 * do not compile. Out: places.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

const ENGINE = new URL("../../engine/mod.ts", import.meta.url).href;

/**
 * Interrupts an endless loop for 400 milliseconds of the clock, the last 200 of which its module may be optimized, then
 * lets the event loop run.
 */
const program = (deadline: number) => `
  let clock = 0;
  performance.now = () => clock += 2;
  const places = [];
  let place = "call";
  process.getBuiltinModule("node:worker_threads").Worker = class {
    constructor() { places.push(place); }
    unref() {}
    on() {}
    postMessage() {}
  };
  const { NewEngine } = await import(${JSON.stringify(ENGINE)});
  const instance = NewEngine({ interruptible: true, deterministic: true, tier: "auto" }).compile(
    '(module (func (export "endless") (loop $l (br $l))))').instantiate();
  for (const end = clock + 400; clock < end;) {
    try {
      instance.call({ deadline: ${deadline} }, "endless");
    } catch (error) {
      if (error.message !== "interrupted") throw error;
    }
  }
  place = "event loop";
  for (let turn = 0; places.length === 0 && turn < 6000; turn++) await new Promise((done) => setTimeout(done, 10));
  console.log(places.join(", "));`;

function placesOfStarts(deadline: number): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-start-"));
  try {
    const file = join(folder, "program.mjs");
    writeFileSync(file, program(deadline));
    const [command, first] = hostCommand(file);
    const { stdout, stderr, status } = spawnSync(command, first, {
      env: { ...process.env, NO_COLOR: "1" },
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
    });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("the helper thread is started by the event loop if the calls have near deadlines", () => {
  assert.equal(placesOfStarts(5), "event loop");
});

Deno.test("the helper thread is started by a call that has time for it", () => {
  assert.equal(placesOfStarts(350), "call");
});
