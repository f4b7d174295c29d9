/**
 * A hostile process in place of a runner: it exits, keeps silent, sends noise, forged answers and calls, or floods its
 * program. Every request fails with one error, and the process is gone.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { TrapError } from "../../engine/base/errors.ts";
import { Runner, RunnerError } from "../../engine/runner/mod.ts";
import { hostCommand } from "../support/host_arguments.ts";

function start(mode: string, startDeadline?: number): Promise<Runner> {
  const [program, first] = hostCommand(fileURLToPath(new URL("./hostile_runner.ts", import.meta.url)));
  const command = [program, ...first, mode];
  const options = { command, maxMessageBytes: 1 << 20 };
  return Runner.start(startDeadline === undefined ? options : { ...options, startDeadline });
}

/** The error of a rejection, which must be a RunnerError. */
async function failureOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(() => new Error("it resolved"), (error) => error);
  assert.ok(error instanceof RunnerError, String(error));
  return error.message;
}

/** Waits until a runner's process is gone. */
async function untilGone({ processId }: Runner): Promise<void> {
  for (;;) {
    try {
      process.kill(processId!, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

Deno.test("a runner that fails at its start is an error", async () => {
  assert.match(await failureOf(start("exits")), /^The runner ended with status 7/);
  assert.match(await failureOf(start("version")), /another version/);
  assert.match(await failureOf(start("silent", 1500)), /did not answer within 1500 ms/);
  assert.match(await failureOf(Runner.start({ command: ["/there/is/no/such/program"] })), /could not be started/);
});

/** The error of the first request, by mode. */
const FIRST: Readonly<Record<string, RegExp>> = {
  noise: /unknown kind/,
  unknown: /unknown kind 99/,
  upper: /unknown kind/,
  long: /a message of 4294967295 bytes/,
  forged: /request 4000000, which is not in progress/,
  foreign: /which only programs send/,
  again: /a second answer to the first message/,
  function: /host function 5, which does not exist/,
  orphan: /a call of a host function without a request/,
  short: /a payload that ends too early/,
  list: /without imports or exports/,
  json: /a payload that is not JSON/,
  reason: /a payload that is not JSON/,
  dies: /^The runner ended/,
  flood: /not in progress/,
  chatter: /^The runner ended with status 1: x+$/,
};

for (const [mode, expected] of Object.entries(FIRST)) {
  Deno.test(`a hostile runner: ${mode}`, async () => {
    const runner = await start(mode);
    assert.match(await failureOf(runner.compile("(module)")), expected);
    assert.equal(runner.isOpen, false);
    await failureOf(runner.compile("(module)"));
    await untilGone(runner);
  });
}

Deno.test("a hostile runner: a second answer to a request", async () => {
  const runner = await start("twice");
  await runner.compile("(module)").catch((error) => assert.ok(error instanceof RunnerError));
  await untilGone(runner);
  assert.match(await failureOf(runner.compile("(module)")), /not in progress/);
});

Deno.test("a runner that is deaf is ended at the deadline of a request", async () => {
  const runner = await start("deaf");
  const compiling = failureOf(runner.compile("(module)"));
  await runner.close();
  assert.match(await compiling, /has been closed/);
});

Deno.test("a hostile runner's calls and results", async () => {
  for (
    const [mode, expected] of [
      ["call-twice", /a second call of a host function at once/],
      ["call-result", /unknown tag 200/],
      ["call-count", /a list of 4294967295 values/],
      ["call-silent", /did not answer within 1010 ms/],
    ] as const
  ) {
    const runner = await start(mode);
    const module = await runner.compile("(module)");
    const instance = await module.instantiate({}, { e: { f: () => new Promise(() => {}) } });
    assert.match(await failureOf(instance.call({ deadline: 10 }, "run")), expected, mode);
    await untilGone(runner);
  }
  const flooding = await start("call-flood");
  const flooded = await (await flooding.compile("(module)")).instantiate({}, { e: { f: () => {} } });
  assert.match(await failureOf(flooded.call({}, "run")), /does not read the answers of host functions/);
  await untilGone(flooding);
  const runner = await start("call-error");
  const instance = await (await runner.compile("(module)")).instantiate({}, { e: { f: () => {} } });
  const error = await instance.call({}, "run").catch((error) => error);
  assert.ok(error instanceof TrapError, String(error));
  assert.ok(error.message.length <= 2000 && error.frames.length <= 200);
  await runner.close();
});
