/**
 * The debugger as an editor uses it, driven by an independent client of the Debug Adapter Protocol: breakpoints by
 * line, function and offset, conditions, log points, steps, stacks, variables of the source and of the module, memory,
 * traps, pausing. The programs are in programs/, made by programs/build.sh.
 */
import { DebugClient } from "@vscode/debugadapter-testsupport";
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serveAdapter } from "../../project/debug/adapter.ts";
import { prepareProgram } from "../../project/ops/run/debug_program.ts";
import { HANG_MS } from "../support/hang.ts";

const SHAPES = fileURLToPath(new URL("./programs/shapes.c", import.meta.url));
const MAIN = 1;

/** The path of a file in programs/. */
function program(name: string): string {
  return fileURLToPath(new URL(`./programs/${name}`, import.meta.url));
}

/** Serves one client on a free port, and runs `use` with it. */
async function withClient(use: (client: DebugClient) => Promise<void>): Promise<void> {
  const server: Server = createServer((socket) => {
    serveAdapter(socket, socket, {
      launch: (request, print) =>
        prepareProgram(String(request.program), (request.args ?? []) as string[], {
          context: {},
          engine: {},
          wasiGroups: undefined,
          preopens: [],
          env: [],
          ...(typeof request.invoke === "string" ? { invoke: request.invoke } : {}),
        }, print),
    }).then(() => socket.end());
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const client = new DebugClient("", "", "waft");
  try {
    await client.start((server.address() as { port: number }).port);
    await client.initializeRequest();
    await guarded(use(client));
  } finally {
    // The connection ends before the client has heard of it.
    client.stop().catch(() => {});
    await new Promise((closed) => server.close(closed));
  }
}

/** Fails instead of waiting for ever for an event that does not come. */
async function guarded(session: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((_, fail) => {
    timer = setTimeout(() => fail(new Error("the session has hung")), HANG_MS);
  });
  await Promise.race([session, late]).finally(() => clearTimeout(timer));
}

/** Launches a program with the breakpoints that `configure` sets. */
async function launch(
  client: DebugClient,
  args: Record<string, unknown>,
  configure: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const initialized = client.waitForEvent("initialized");
  await client.launchRequest(args);
  await initialized;
  await configure();
  await client.configurationDoneRequest();
}

/** The next stop: its reason and the place of its innermost frame. */
async function stopped(client: DebugClient, resume: () => Promise<unknown>): Promise<string> {
  const ended = client.waitForEvent("terminated").then(() => assert.fail("the program ended"));
  const event = Promise.race([client.waitForEvent("stopped"), ended]);
  await resume();
  const { body } = await event;
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  return `${body.reason} ${stackFrames[0]?.name}:${stackFrames[0]?.line}`;
}

/** The variables of a scope of the innermost frame, `name` → text. */
async function variables(client: DebugClient, scope: string, frame = 0): Promise<Map<string, string>> {
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  const { scopes } = (await client.scopesRequest({ frameId: stackFrames[frame].id })).body;
  const { variablesReference } = scopes.find(({ name }) => name === scope)!;
  const list = (await client.variablesRequest({ variablesReference })).body.variables;
  return new Map(list.map(({ name, value }) => [name, value]));
}

async function evaluated(client: DebugClient, expression: string): Promise<string> {
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  return (await client.evaluateRequest({ expression, frameId: stackFrames[0].id })).body.result;
}

const RUN = { program: program("shapes5.wasm"), invoke: "run", args: ["4"] };

Deno.test("values of Rust are shown as Rust writes them: text, vectors, slices, enums, references to them", () =>
  withClient(async (client) => {
    const source = { path: fileURLToPath(new URL("./programs/values.rs", import.meta.url)) };
    const line = readFileSync(source.path, "utf8").split("\n").findIndex((text) => text.includes("copy.len +")) + 1;
    const reached = await stopped(client, () =>
      launch(
        client,
        { program: program("values.wasm"), invoke: "run", args: ["5"] },
        () => client.setBreakpointsRequest({ source, breakpoints: [{ line }] }),
      ));
    assert.equal(reached, `breakpoint values::look:${line}`);
    assert.deepEqual([...await variables(client, "Locals")], [
      ["copy", "[2]"],
      ["text", '"slice"'],
      ["owned", '"owned"'],
      ["list", "[3]"],
      ["words", "[2]"],
      ["empty", "Empty"],
      ["value", "Value(…)"],
      ["pair", "Pair {…}"],
      ["some", "Some(…)"],
      ["none", "None"],
    ]);
    const expressions = ["list[1]", "words[1]", "pair.right", "value.__0 + 1", "(*some).__0", "*pair"];
    const results = await Promise.all(expressions.map((expression) => evaluated(client, expression)));
    assert.deepEqual(results, ["20", "9", "3", "6", "5", "Pair {…}"]);
    await assert.rejects(evaluated(client, "copy[2]"), /index 2 of 2 elements/);
  }));

Deno.test("a breakpoint in a line stops there each time, and steps go line by line", () =>
  withClient(async (client) => {
    const stop = stopped(client, () =>
      launch(client, RUN, async () => {
        const { breakpoints } =
          (await client.setBreakpointsRequest({ source: { path: SHAPES }, breakpoints: [{ line: 28 }, { line: 18 }] }))
            .body;
        assert.deepEqual(breakpoints.map(({ verified, line }) => [verified, line]), [[true, 28], [true, 19]]);
      }));
    assert.equal(await stop, "breakpoint add:28");
    const step = (request: () => Promise<unknown>) => stopped(client, request);
    assert.equal(await step(() => client.nextRequest({ threadId: MAIN })), "step add:27");
    assert.equal(await step(() => client.nextRequest({ threadId: MAIN })), "breakpoint add:28");
    await client.setBreakpointsRequest({ source: { path: SHAPES }, breakpoints: [] });
    assert.equal(await step(() => client.stepOutRequest({ threadId: MAIN })), "step run:38");
    assert.equal(await step(() => client.nextRequest({ threadId: MAIN })), "step run:39");
    assert.equal(await step(() => client.nextRequest({ threadId: MAIN })), "step run:40");
    assert.equal(await step(() => client.stepInRequest({ threadId: MAIN })), "step factorial:20");
    const ended = client.waitForEvent("terminated");
    await client.continueRequest({ threadId: MAIN });
    await ended;
  }));

Deno.test("steps over a call do not stop inside, and the stack of a recursion is whole", () =>
  withClient(async (client) => {
    const source = { path: SHAPES };
    const at = await stopped(
      client,
      () =>
        launch(
          client,
          RUN,
          () => client.setBreakpointsRequest({ source, breakpoints: [{ line: 20, condition: "n == 1" }] }),
        ),
    );
    assert.equal(at, "breakpoint factorial:20");
    const { stackFrames, totalFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
    assert.equal(totalFrames, 5);
    assert.deepEqual(stackFrames.map(({ name, line }) => `${name}:${line}`), [
      "factorial:20",
      "factorial:21",
      "factorial:21",
      "factorial:21",
      "run:40",
    ]);
    assert.equal((await variables(client, "Locals", 2)).get("n"), "3");
    assert.equal(await stopped(client, () => client.stepOutRequest({ threadId: MAIN })), "step factorial:21");
    assert.equal(await stopped(client, () => client.nextRequest({ threadId: MAIN })), "step factorial:22");
    assert.equal(await evaluated(client, "rest"), "1");
  }));

Deno.test("conditions, hit counts and log points", () =>
  withClient(async (client) => {
    const source = { path: SHAPES };
    const output = client.waitForEvent("output");
    const stop = stopped(client, () =>
      launch(client, RUN, () =>
        client.setBreakpointsRequest({
          source,
          breakpoints: [
            { line: 31, logMessage: "the sum is {sum}, of {length}" },
            { line: 28, hitCondition: "3" },
          ],
        })));
    assert.equal(await stop, "breakpoint add:28");
    assert.equal(await evaluated(client, "i"), "2");
    assert.equal(await evaluated(client, "sum + values[0] == 10 * 4 && i < length"), "1");
    const ended = client.waitForEvent("terminated");
    await client.continueRequest({ threadId: MAIN });
    assert.equal((await output).body.output, "the sum is 34, of 3\n");
    await ended;
  }));

Deno.test("a condition that cannot be evaluated stops and says why", () =>
  withClient(async (client) => {
    const event = client.waitForEvent("stopped");
    await launch(client, RUN, () =>
      client.setBreakpointsRequest({
        source: { path: SHAPES },
        breakpoints: [{ line: 28, condition: "missing > 1" }],
      }));
    assert.match((await event).body.text, /no variable is called missing/);
  }));

Deno.test("a trap is a stop, with the place, the frames and the exit status", () =>
  withClient(async (client) => {
    const at = await stopped(client, () => launch(client, { ...RUN, invoke: "divide", args: ["7", "0"] }));
    assert.equal(at, "exception divide:44");
    const { description } = (await client.customRequest("exceptionInfo", { threadId: MAIN })).body;
    assert.match(description, /integer divide by zero/);
    assert.equal(await evaluated(client, "a"), "7");
    const exited = client.waitForEvent("exited");
    await client.continueRequest({ threadId: MAIN });
    assert.equal((await exited).body.exitCode, 134);
  }));

Deno.test("a running program can be paused, inspected and ended", () =>
  withClient(async (client) => {
    await launch(client, { ...RUN, invoke: "spin", args: [] });
    assert.match(await stopped(client, () => client.pauseRequest({ threadId: MAIN })), /^pause spin:(49|5\d)$/);
    const exited = client.waitForEvent("exited");
    await client.terminateRequest();
    await exited;
  }));

Deno.test("functions, offsets and memory; a variable that was changed has its value in the program", () =>
  withClient(async (client) => {
    const at = await stopped(
      client,
      () =>
        launch(
          client,
          { ...RUN, invoke: "divide", args: ["7", "2"] },
          () => client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "divide" }, { name: "nothing" }] }),
        ),
    );
    assert.equal(at, "breakpoint divide:44");
    const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
    const { scopes } = (await client.scopesRequest({ frameId: stackFrames[0].id })).body;
    const { variablesReference } = scopes.find(({ name }) => name === "Locals")!;
    await client.setVariableRequest({ variablesReference, name: "a", value: "30" });
    const much = client.customRequest("readMemory", { memoryReference: "0x0", count: 2 ** 32 });
    await assert.rejects(much, /at most 16777216 bytes can be read at once/);
    const output = client.waitForEvent("output");
    await client.continueRequest({ threadId: MAIN });
    assert.equal((await output).body.output, "15\n");
  }));

Deno.test("requests that make no sense are refused in words", () =>
  withClient(async (client) => {
    const refused = (request: Promise<unknown>) => request.then(() => "served", (error: Error) => error.message);
    assert.match(await refused(client.threadsRequest()), /served/);
    assert.match(await refused(client.continueRequest({ threadId: MAIN })), /no program is launched/);
    assert.match(await refused(client.launchRequest({ program: "/nowhere.wasm" } as object)), /no such file/i);
    assert.match(await refused(client.customRequest("fly")), /the request fly is not supported/);
  }));

/** A variable with its parts to a depth: texts, and lists of `name: parts`. */
async function tree(client: DebugClient, expression: string, depth: number): Promise<unknown> {
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  const { body } = await client.evaluateRequest({ expression, frameId: stackFrames[0].id });
  return await partsOf(client, body.result, body.variablesReference, depth);
}

async function partsOf(client: DebugClient, text: string, reference: number, depth: number): Promise<unknown> {
  if (reference === 0 || depth === 0) return text;
  const { variables: parts } = (await client.variablesRequest({ variablesReference: reference })).body;
  const entries = await Promise.all(
    parts.map(async ({ name, value, variablesReference }) => [
      name,
      await partsOf(client, value, variablesReference, depth - 1),
    ]),
  );
  return Object.fromEntries(entries);
}

for (const version of [4, 5]) {
  Deno.test(`variables of the source, DWARF ${version}: structures, arrays, pointers, enumerations, bit fields`, () =>
    withClient(async (client) => {
      const at = await stopped(
        client,
        () =>
          launch(
            client,
            { ...RUN, program: program(`shapes${version}.wasm`) },
            () => client.setBreakpointsRequest({ source: { path: SHAPES }, breakpoints: [{ line: 38 }] }),
          ),
      );
      assert.equal(at, "breakpoint run:38");
      assert.deepEqual([...(await variables(client, "Locals")).keys()], ["n", "first", "values", "ratio", "sum"]);
      assert.equal((await variables(client, "Statics")).get("count"), "41");
      const { name, ...first } = await tree(client, "first", 3) as { name: unknown };
      assert.match(String(await tree(client, "first.name", 0)), /^0x[0-9a-f]+ "first"$/);
      assert.deepEqual(first, {
        corners: { "[0]": { x: "1", y: "2.5" }, "[1]": { x: "3", y: "-4" } },
        next: { "*": { ...(first as { next: { "*": object } }).next["*"] } },
        color: "BLUE",
        visible: "0",
        layer: "2",
      });
      assert.deepEqual(name, { "*": "102 'f'" });
      assert.deepEqual(await tree(client, "first.next", 2), {
        "*": {
          ...(await tree(client, "*first.next", 1) as object),
          color: "GREEN",
          layer: "5",
        },
      });
      assert.equal(await evaluated(client, "first.next.corners[1].y * 2"), "3");
      assert.deepEqual(await tree(client, "values", 1), { "[0]": "10", "[1]": "20", "[2]": "4" });
      assert.equal(await evaluated(client, "ratio"), "0.25");
      assert.equal(await evaluated(client, "first.color == 6 && n == 4 ? 1 : 2"), "1");
    }));
}

Deno.test("damaged debugging information gives fewer variables, and no error", async () => {
  const { SourceVariables } = await import("../../project/debug/dwarf/source_variables.ts");
  const { decodeModule } = await import("../../engine/binary/decode.ts");
  const memory = new Uint8Array(1 << 17);
  const frame = { local: () => 1n, global: () => 2n, setLocal: () => {}, memory };
  let seed = 1;
  const random = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8;
  for (const version of [4, 5]) {
    const { customs } = decodeModule(new Uint8Array(readFileSync(program(`shapes${version}.wasm`))));
    let found = 0;
    for (let round = 0; round < 400; round++) {
      const damaged = customs.map((section) => {
        const bytes = section.bytes.slice(0, round % 3 === 0 ? random() % (section.bytes.length + 1) : undefined);
        for (let k = 0; k < round % 5 && bytes.length > 0; k++) bytes[random() % bytes.length] = random();
        return { ...section, bytes };
      });
      const variables = SourceVariables.of(damaged);
      for (let pc = 3; pc < 1300; pc += 97) {
        const list = variables?.locals({ ...frame, pc }, () => memory) ?? [];
        found += list.length;
        for (const each of list) void each.parts?.().length;
        void variables?.statics({ ...frame, pc }, () => memory);
      }
    }
    assert(found > 100, `${found} variables`);
  }
});

/** Prints and passes on random numbers. */
const ROLLS = `(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $seen (param $value i32))
  (func (export "run") (local $k i32)
    (loop $l
      (drop (call $random (i32.const 65000) (i32.const 4)))
      (call $seen (i32.load (i32.const 65000)))
      (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 100))))))`;

const SUMS = { program: program("sums.wasm"), invoke: "run", args: ["3"] };

Deno.test("AssemblyScript: breakpoints and steps by the lines of its source map", () =>
  withClient(async (client) => {
    const source = { path: program("sums.ts") };
    const at = await stopped(client, () =>
      launch(client, SUMS, () => client.setBreakpointsRequest({ source, breakpoints: [{ line: 17 }] })));
    assert.equal(at, "breakpoint sums/run:17");
    assert.equal(await evaluated(client, "n"), "3");
    await client.setBreakpointsRequest({ source, breakpoints: [] });
    const places: string[] = [];
    for (const step of ["next", "stepIn", "next", "next", "stepIn", "stepOut", "next"]) {
      places.push(
        await stopped(client, () =>
          client.customRequest(step, { threadId: MAIN })),
      );
    }
    assert.deepEqual(places, [
      "step sums/run:18",
      "step sums/sumOfSquares:8",
      "step sums/sumOfSquares:9",
      "step sums/sumOfSquares:10",
      "step sums/square:4",
      "step sums/sumOfSquares:10",
      "step sums/sumOfSquares:9",
    ]);
    const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
    assert.equal(stackFrames[0]?.source?.path, source.path);
  }));

Deno.test("AssemblyScript: a breakpoint in a loop stops once per turn", () =>
  withClient(async (client) => {
    const source = { path: program("sums.ts") };
    const seen: string[] = [];
    const note = async () => seen.push(`${await evaluated(client, "n")} ${await evaluated(client, "k")}`);
    await stopped(client, () =>
      launch(client, SUMS, () => client.setBreakpointsRequest({ source, breakpoints: [{ line: 10 }] })));
    await note();
    for (let k = 0; k < 5; k++) {
      await stopped(client, () =>
        client.continueRequest({ threadId: MAIN }));
      await note();
    }
    assert.deepEqual(seen, ["3 1", "3 2", "3 3", "2 1", "2 2", "1 1"]);
  }));

/** Sends a request that resumes the program, and returns the next stop with the value of an expression. */
async function after(client: DebugClient, request: string, expression: string): Promise<string> {
  const at = await stopped(client, () => client.customRequest(request, { threadId: MAIN }));
  return `${at} ${expression}=${await evaluated(client, expression)}`;
}

Deno.test("back: to the breakpoint before, to the line before, by an instruction, and forward again", () =>
  withClient(async (client) => {
    const source = { path: program("sums.ts") };
    await stopped(
      client,
      () => launch(client, SUMS, () => client.setBreakpointsRequest({ source, breakpoints: [{ line: 10 }] })),
    );
    for (const k of [2, 3]) {
      assert.equal(await after(client, "continue", "k"), `breakpoint sums/sumOfSquares:10 k=${k}`);
    }
    assert.equal(await after(client, "reverseContinue", "k"), "breakpoint sums/sumOfSquares:10 k=2");
    assert.equal(await evaluated(client, "sum"), "1");
    assert.equal(await after(client, "stepBack", "k"), "step sums/sumOfSquares:9 k=1");
    assert.equal(await after(client, "stepBack", "sum"), "step sums/sumOfSquares:10 sum=0");
    assert.equal(await after(client, "stepBack", "sum"), "step sums/sumOfSquares:9 sum=0");
    assert.equal(await after(client, "stepBack", "sum"), "step sums/sumOfSquares:8 sum=0");
    assert.equal(await after(client, "stepBack", "n"), "step sums/run:18 n=3");
    assert.equal(await after(client, "next", "n"), "breakpoint sums/sumOfSquares:10 n=3");
  }));

Deno.test("back: the host is not called again, and what it did is repeated", () =>
  withClient(async (client) => {
    const folder = mkdtempSync(join(tmpdir(), "back-"));
    try {
      writeFileSync(join(folder, "m.wat"), ROLLS);
      await stopped(client, () =>
        launch(client, { program: join(folder, "m.wat"), invoke: "run" }, () =>
          client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "seen" }] })));
      const rolled = [await evaluated(client, "value")];
      for (let k = 0; k < 3; k++) {
        await stopped(client, () =>
          client.continueRequest({ threadId: MAIN }));
        rolled.push(await evaluated(client, "value"));
      }
      assert.ok(new Set(rolled).size > 1, rolled.join());
      const back: string[] = [];
      for (let k = 0; k < 3; k++) {
        await stopped(client, () =>
          client.customRequest("reverseContinue", { threadId: MAIN }));
        back.push(await evaluated(client, "value"));
      }
      assert.deepEqual(back, rolled.slice(0, 3).reverse());
      await stopped(client, () => client.continueRequest({ threadId: MAIN }));
      assert.equal(await evaluated(client, "value"), rolled[1]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }));

Deno.test("back: from a trap, and not beyond the beginning", () =>
  withClient(async (client) => {
    const at = await stopped(client, () => launch(client, { ...RUN, invoke: "divide", args: ["7", "0"] }));
    assert.equal(at, "exception divide:44");
    assert.match(
      await stopped(client, () => client.customRequest("stepBack", { threadId: MAIN })),
      /^step divide:4\d$/,
    );
    assert.match(
      await stopped(client, () => client.customRequest("reverseContinue", { threadId: MAIN })),
      /^entry divide:4\d$/,
    );
    await assert.rejects(() => client.customRequest("stepBack", { threadId: MAIN }), /beginning of the program/);
    assert.equal(await stopped(client, () => client.continueRequest({ threadId: MAIN })), "exception divide:44");
    const exited = client.waitForEvent("exited");
    await client.continueRequest({ threadId: MAIN });
    assert.equal((await exited).body.exitCode, 134);
  }));

Deno.test("AssemblyScript: a source that is not on this machine has the text of the source map", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sums-"));
  try {
    for (const name of ["sums.wasm", "sums.wasm.map"]) copyFileSync(program(name), join(folder, name));
    await withClient(async (client) => {
      const run = { ...SUMS, program: join(folder, "sums.wasm") };
      const at = await stopped(
        client,
        () => launch(client, run, () => client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "square" }] })),
      );
      assert.equal(at, "breakpoint sums/square:4");
      const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
      const { sourceReference = 0 } = stackFrames[0]?.source ?? {};
      const { content } = (await client.sourceRequest({ sourceReference })).body;
      assert.equal(content, readFileSync(program("sums.ts"), "utf8"));
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test("a source map outside of the module's folder is not read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sums-"));
  try {
    mkdirSync(join(folder, "in"));
    copyFileSync(program("sums.wasm"), join(folder, "in/sums.wasm"));
    copyFileSync(program("sums.wasm.map"), join(folder, "sums.wasm.map"));
    symlinkSync("../sums.wasm.map", join(folder, "in/sums.wasm.map"));
    await withClient(async (client) => {
      const run = { ...SUMS, program: join(folder, "in/sums.wasm") };
      await launch(client, run);
      const { sources } = (await client.customRequest("loadedSources")).body;
      assert.deepEqual(sources, []);
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** A component of two core modules, the second of which calls the first. */
const COMPONENT = `(component
  (core module $lib
    (memory 1)
    (data (i32.const 0) "lib")
    (func $half (export "half") (param $n i32) (result i32) (i32.div_u (local.get $n) (i32.const 2))))
  (core instance $lib (instantiate $lib))
  (core module $main
    (import "lib" "half" (func $half (param i32) (result i32)))
    (func $spin (export "spin") (loop $l (br $l)))
    (func $run (export "run") (param $n i32) (result i32)
      (i32.add (call $half (local.get $n)) (call $half (i32.const 8)))))
  (core instance $i (instantiate $main (with "lib" (instance $lib))))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "run") (param "n" u32) (result u32) (canon lift (core func $i "run"))))`;

Deno.test("a component stops in all its core modules, each with its own text", async () => {
  const folder = mkdtempSync(join(tmpdir(), "component-"));
  const path = join(folder, "two.wat");
  writeFileSync(path, COMPONENT);
  const textOf = async (client: DebugClient) => {
    const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
    const { sourceReference = 0 } = stackFrames[0]?.source ?? {};
    return { sourceReference, content: (await client.sourceRequest({ sourceReference })).body.content };
  };
  try {
    await withClient(async (client) => {
      const capabilities = client.waitForEvent("capabilities");
      const run = { program: path, invoke: "run(6)", stopOnEntry: true };
      const first = await stopped(
        client,
        () => launch(client, run, () => client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "half" }] })),
      );
      assert.match(first, /^entry run:/);
      assert.equal((await capabilities).body.capabilities.supportsStepBack, false);
      await assert.rejects(client.customRequest("stepBack", { threadId: MAIN }), /cannot go back/);
      const main = await textOf(client);
      assert.match(await stopped(client, () => client.continueRequest({ threadId: MAIN })), /^breakpoint half:/);
      const lib = await textOf(client);
      assert.notEqual(lib.sourceReference, main.sourceReference);
      assert.ok(lib.content.includes("i32.div_u") && !main.content.includes("i32.div_u"));
      assert.equal((await variables(client, "Locals")).get("n"), "6");
      const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
      assert.deepEqual(stackFrames.map(({ name, moduleId }) => [name, moduleId]), [["half", `${path}#2`], [
        "run",
        path,
      ]]);
      const { modules } = (await client.modulesRequest({})).body;
      assert.deepEqual(modules.map(({ name }) => name), [path, `${path}#2`]);
      assert.deepEqual([...await variables(client, "Locals", 1)], [["n", "6"]]);
      const memoryOf = async (memoryReference: string) =>
        (await client.customRequest("readMemory", { memoryReference, count: 3 })).body?.data;
      assert.deepEqual([await memoryOf("0x0"), await memoryOf("1/0x0")], [btoa("lib"), btoa("lib")]);
      await assert.rejects(memoryOf("0/0x0"), /the module has no memory/);
      await client.setFunctionBreakpointsRequest({ breakpoints: [] });
      const { instructionPointerReference: instructionReference = "" } = stackFrames[1];
      const after = { breakpoints: [{ instructionReference, offset: 2 }] }; // behind the call
      assert.equal((await client.customRequest("setInstructionBreakpoints", after)).body.breakpoints[0].verified, true);
      const returned = await stopped(client, () => client.continueRequest({ threadId: MAIN }));
      assert.match(returned, /^breakpoint run:/);
      await client.customRequest("setInstructionBreakpoints", { breakpoints: [] });
      const line = main.content.split("\n").findIndex((text) => text.includes("i32.add")) + 1;
      const source = { sourceReference: main.sourceReference };
      const { breakpoints } = (await client.setBreakpointsRequest({ source, breakpoints: [{ line }] })).body;
      assert.deepEqual(breakpoints.map(({ verified, line }) => [verified, line]), [[true, line]]);
      assert.equal(await stopped(client, () => client.continueRequest({ threadId: MAIN })), `breakpoint run:${line}`);
      const output = client.waitForEvent("output");
      const exited = client.waitForEvent("exited");
      await client.continueRequest({ threadId: MAIN });
      assert.deepEqual([(await output).body.output, (await exited).body.exitCode], ["7\n", 0]);
    });
    await withClient(async (client) => {
      await launch(client, { program: path, invoke: "spin" });
      assert.match(await stopped(client, () => client.pauseRequest({ threadId: MAIN })), /^pause spin:/);
      const ended = client.waitForEvent("terminated");
      await client.customRequest("terminate");
      await ended;
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test("a command of WASI prints to the editor, and ends with its status", () =>
  withClient(async (client) => {
    const hello = fileURLToPath(new URL("../component/fixtures/hello.wasm", import.meta.url));
    const at = await stopped(client, () =>
      launch(
        client,
        { program: hello, args: ["1", "2"] },
        () => client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "run" }] }),
      ));
    assert.match(at, /^breakpoint run:/);
    const output = client.waitForEvent("output");
    const exited = client.waitForEvent("exited");
    await client.continueRequest({ threadId: MAIN });
    const { category, output: text } = (await output).body;
    assert.deepEqual([category, text, (await exited).body.exitCode], ["stdout", "1", 1]);
  }));
