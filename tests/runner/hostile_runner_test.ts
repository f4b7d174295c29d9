/**
 * A hostile process in place of a runner: it exits, keeps silent, sends noise, forged answers and calls, or floods its
 * program. Every request fails with one error, and the process is gone.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { TrapError } from "../../engine/base/errors.ts";
import { Runner as ComponentRunner } from "../../component/runner/mod.ts";
import { Runner, RunnerError } from "../../engine/runner/mod.ts";
import { hostCommand } from "../support/host_arguments.ts";

function commandOf(mode: string): string[] {
  const [program, first] = hostCommand(fileURLToPath(new URL("./hostile_runner.ts", import.meta.url)));
  return [program, ...first, mode];
}

function start(mode: string, startDeadline?: number): Promise<Runner> {
  const command = commandOf(mode);
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

/** A component with resources of two types of the host, of which a call lends the first. */
const COMPONENT = `(component
  (import "host" (instance $host
    (export "file" (type $file (sub resource)))
    (export "socket" (type $socket (sub resource)))
    (export "[method]file.size" (func (param "self" (borrow $file)) (result u32)))
    (export "[method]socket.size" (func (param "self" (borrow $socket)) (result u32)))))
  (alias export $host "file" (type $file))
  (core module $m (func (export "run") (param i32) (result i32) (i32.const 5)))
  (core instance $i (instantiate $m))
  (func (export "run") (param "file" (borrow $file)) (result u32) (canon lift (core func $i "run"))))`;

/** The errors of calls of a component whose process is hostile, by mode. */
const FORGED: Readonly<Record<string, RegExp>> = {
  "component-unknown": /a handle 7 that its component does not have/,
  "component-side": /a handle of the other side/,
  "component-type": /a handle 1 that its component does not have/,
  "component-stale": /a handle 1 that its component does not have/,
  "component-text": /a value that is not of its type, u32/,
  "component-range": /a value that is not of its type, u32/,
  "component-list": /a value that is not of its type, u32/,
  "component-channel": /a value that is not of its type, u32/,
  "component-form": /a value of the unknown form 77/,
  "component-drop": /the end of a handle 9 that its component does not have/,
  "component-stream": /a notice about stream 1, which its component does not have/,
  "component-kind": /a notice about stream 1, which its component does not have/,
  "component-notice": /a notice about 4000000, which does not exist/,
  "component-twice": /the end of a handle 1 that its component does not have/,
};

for (const [mode, expected] of Object.entries(FORGED)) {
  Deno.test(`a hostile runner of a component: ${mode.slice(10)}`, async () => {
    const runner = await ComponentRunner.start({ command: commandOf(mode) });
    const component = await runner.compileComponent(COMPONENT);
    const reached: unknown[] = [];
    class Sized {
      size(): number {
        reached.push(this);
        return 1;
      }
    }
    const instance = await component.instantiate({}, { host: { File: Sized, Socket: Sized } });
    const call = () => instance.call({}, "run", new Sized());
    if (mode === "component-stale") assert.equal(await call(), 5);
    assert.match(await failureOf(call()), expected);
    assert.deepEqual(reached, [], "no object of the program is reached");
    await untilGone(runner);
  });
}
