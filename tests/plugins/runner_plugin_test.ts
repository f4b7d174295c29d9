/**
 * Component plugins in processes of their own (runner_plugin.ts): values, limits, and plugins that loop, exhaust memory
 * or end their process.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { type Context, NewEngine, TrapError } from "@waft/engine";
import { PluginHost, pluginOf } from "../../project/plugins/plugin_host.ts";
import type { HostOptions, InstanceGraph } from "../../project/plugins/plugin_host.ts";
import * as runnerRuntime from "../../project/plugins/runner_plugin.ts";
import { CALLER, componentPlugin, INTERFACE, MEMORY, textPlugin } from "./component_plugin.ts";
import { CONTRACT, guestModule, PLUGIN, projectOf, type TestPlugin } from "./plugin_project.ts";

const NS = `${CONTRACT}@1`;
const ENGINE = NewEngine({ bounds: "explicit", interruptible: true, fuel: true });

/** A host whose component plugins run in `runtime`. */
function hostOf(
  plugins: readonly TestPlugin[],
  options: HostOptions = {},
  runtime: typeof runnerRuntime = runnerRuntime,
): PluginHost {
  const project = projectOf(plugins, ".");
  const own = project.plugins.map((plugin) =>
    plugin.component === undefined ? plugin : { ...plugin, component: { ...plugin.component, runtime } }
  );
  return new PluginHost({ ...project, plugins: own }, ENGINE, options);
}

/** Runs `work` with a guest whose export `f` calls a function of the plugin. */
async function withPlugin(
  plugin: TestPlugin,
  guest: string,
  work: (graph: InstanceGraph) => Promise<void>,
  context: Context = {},
  runtime: typeof runnerRuntime = runnerRuntime,
): Promise<void> {
  const { digest } = guestModule(guest);
  const graph = await hostOf([plugin], {}, runtime).startAsync({ module: ENGINE.compile(guest), digest, context });
  try {
    await work(graph);
  } finally {
    await graph.closeAsync();
  }
}

const NUMBERS = (functions: string, bodies: string, more: Partial<TestPlugin> = {}) =>
  componentPlugin(functions, `(module ${MEMORY} ${bodies})`, { provides: ["f i32->i32"], ...more });
const GUEST = `(module
  (import "${NS}" "f" (func $f (param i32) (result i32)))
  (func (export "f") (param i32) (result i32) (call $f (local.get 0))))`;

/** The error of a call of `f`, which the plugin must have caused. */
async function failureOf(
  plugin: TestPlugin,
  context: Context = {},
  runtime: typeof runnerRuntime = runnerRuntime,
): Promise<Error> {
  let failure: unknown;
  await withPlugin(
    plugin,
    GUEST,
    async (graph) => {
      failure = await graph.callAsync(context, "f", 1).then(() => undefined, (error: unknown) => error);
      await assert.rejects(graph.callAsync({}, "f", 1), /the instance graph is closed/);
    },
    {},
    runtime,
  );
  assert.ok(failure instanceof TrapError, String(failure));
  return failure;
}

const options = { sanitizeResources: false, sanitizeOps: false };

Deno.test("plugins in runners: texts, lists and results", options, async () => {
  await withPlugin(textPlugin(), CALLER, async (graph) => {
    const call = (name: string, ...args: unknown[]) => graph.callAsync({}, name, ...args);
    assert.deepEqual([await call("add", 40, -1), await call("last")], [39, 0xffff]);
    await call("twice", 100, 5);
    const at = await call("word", 8) as number;
    const bytes = [];
    for (let k = 0; k < 10; k++) bytes.push(await call("byte", at + k) as number);
    assert.equal(new TextDecoder().decode(Uint8Array.from(bytes)), "wäftwäft");
    await call("half", 8);
    assert.deepEqual([await call("byte", 8), await call("word", 12)], [0, 4]);
    await call("half", 3); // the error case is a value: the graph goes on
    assert.deepEqual([await call("byte", 8), await call("word", 16)], [1, 3]);
    assert.equal(await call("add", 1, 1), 2);
  });
});

Deno.test("plugins in runners: a plugin keeps its state between calls", options, async () => {
  const counts = NUMBERS(
    "f: func(n: u32) -> u32;",
    `(global $n (mut i32) (i32.const 0))
     (func (export "${INTERFACE}#f") (param i32) (result i32)
       (global.set $n (i32.add (global.get $n) (local.get 0))) (global.get $n))`,
  );
  await withPlugin(counts, GUEST, async (graph) => {
    assert.deepEqual([await graph.callAsync({}, "f", 3), await graph.callAsync({}, "f", 4)], [3, 7]);
  });
});

/** A runtime whose processes are started by `command`, by default runners, and have a second to be ready. */
function impatient(command?: readonly string[]): typeof runnerRuntime {
  const startDeadline = 1000;
  return {
    ...runnerRuntime,
    compile: runnerRuntime.compileIn({ startDeadline, ...(command === undefined ? {} : { command }) }),
  };
}

for (
  const [what, runtime, body] of [
    ["whose process never answers", impatient([process.execPath, "eval", "setInterval(() => {}, 1000)"]), ""],
    ["whose instantiation never ends", impatient(), "(func $start (loop (br 0))) (start $start)"],
  ] as const
) {
  Deno.test(`plugins in runners: one ${what} is ended, and its first call fails`, options, async () => {
    const plugin = NUMBERS(
      "f: func(n: u32) -> u32;",
      `(func (export "${INTERFACE}#f") (param i32) (result i32) (local.get 0)) ${body}`,
    );
    const failure = await failureOf(plugin, {}, runtime);
    assert.match(failure.message, /its process was not ready within 1000 ms of its start/);
    assert.equal(pluginOf(failure), PLUGIN);
  });
}

Deno.test("plugins in runners: guests can be started and called asynchronously only", options, async () => {
  const plugin = NUMBERS(
    "f: func(n: u32) -> u32;",
    `(func (export "${INTERFACE}#f") (param i32) (result i32) (local.get 0))`,
  );
  const host = hostOf([plugin]);
  assert.equal(host.waits, true);
  assert.throws(() => host.start(guestModule(GUEST)), /plugin\.waits|runs in a process of its own/);
  await withPlugin(plugin, GUEST, async (graph) => {
    assert.equal(await graph.callAsync({}, "f", 7), 7);
  });
});

Deno.test("plugins in runners: host functions run here, with the grants of the plugin", options, async () => {
  const imports = "import wasi:random/random@0.2.0;";
  const packages = "package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u64; } }";
  const body = `(module
    (import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
    ${MEMORY}
    (func (export "${INTERFACE}#f") (param i32) (result i32) (drop (call $random)) (local.get 0)))`;
  const plugin = (more: Partial<TestPlugin>) =>
    componentPlugin("f: func(n: u32) -> u32;", body, { imports, packages, provides: ["f i32->i32"], ...more });
  await withPlugin(plugin({ requests: { random: {} } }), GUEST, async (graph) => {
    assert.equal(await graph.callAsync({}, "f", 5), 5);
  });
  const denied = await failureOf(plugin({ requests: { random: {} }, optional: ["random"], grants: {} }));
  assert.match(denied.message, /random.* is denied/);
});

Deno.test("plugins in runners: one that loops ends at the deadline, by fuel and by a signal", options, async () => {
  const loops = NUMBERS(
    "f: func(n: u32) -> u32;",
    `(func (export "${INTERFACE}#f") (param i32) (result i32) (loop (br 0)) (unreachable))`,
  );
  const late = await failureOf(loops, { deadline: 200 });
  assert.match(late.message, /deadline|interrupted/);
  await withPlugin(loops, GUEST, async (graph) => {
    const context: Context = { fuel: 100_000n };
    await assert.rejects(graph.callAsync(context, "f", 1), /fuel/);
  }, { fuel: 1_000_000n });
  await withPlugin(loops, GUEST, async (graph) => {
    const controller = new AbortController();
    const call = graph.callAsync({ signal: controller.signal }, "f", 1);
    setTimeout(() => controller.abort(new Error("no longer needed")), 100);
    await assert.rejects(call, /no longer needed/);
    await assert.rejects(graph.callAsync({}, "f", 1), /the instance graph is closed/);
  });
});

Deno.test(
  "plugins in runners: one that exhausts memory or its stack, traps, or returns too much",
  options,
  async () => {
    const grows = NUMBERS(
      "f: func(n: u32) -> u32;",
      `(func (export "${INTERFACE}#f") (param i32) (result i32)
      (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
      (memory.size))`,
      { maxMemoryPages: 16 },
    );
    await withPlugin(grows, GUEST, async (graph) => {
      assert.equal(await graph.callAsync({}, "f", 1), 16);
    });
    const recursive = await failureOf(NUMBERS(
      "f: func(n: u32) -> u32;",
      `(func $f (export "${INTERFACE}#f") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))`,
    )).catch((error: unknown) => error as Error);
    assert.match(String(recursive), /exhausted/);
    const flood = NUMBERS(
      "f: func(n: u32) -> u32; g: func() -> list<u8>;",
      `(func (export "${INTERFACE}#f") (param i32) (result i32) (unreachable))
     (func (export "${INTERFACE}#g") (result i32)
       (i32.store (i32.const 16) (i32.const 0)) (i32.store (i32.const 20) (i32.const -1)) (i32.const 16))`,
      { provides: ["f i32->i32", "g i32->"] },
    );
    const trapped = await failureOf(flood);
    assert.match(trapped.message, /unreachable/);
    assert.equal(pluginOf(trapped), PLUGIN);
    const guest = `(module (import "${NS}" "g" (func $g (param i32))) ${MEMORY}
    (func (export "g") (call $g (i32.const 8))))`;
    await withPlugin(flood, guest, async (graph) => {
      await assert.rejects(graph.callAsync({}, "g"), /list is too long/);
    });
  },
);

Deno.test(
  "plugins in runners: init, stop and the log; one that floods its log ends at the deadline",
  options,
  async () => {
    const log: string[] = [];
    const plugin = componentPlugin(
      "f: func(n: u32) -> u32;",
      `(module
      (import "waft:plugin/self@1.0.0" "log" (func $log (param i32 i32 i32)))
      ${MEMORY}
      (data (i32.const 100) "begins")
      (func $say (param i32) (call $log (local.get 0) (i32.const 100) (i32.const 6)))
      (func (export "waft:plugin/lifecycle@1.0.0#init") (call $say (i32.const 1)))
      (func (export "waft:plugin/lifecycle@1.0.0#stop") (call $say (i32.const 2)))
      (func (export "${INTERFACE}#f") (param i32) (result i32)
        (loop (call $say (i32.const 3)) (br 0)) (unreachable)))`,
      {
        imports: "import waft:plugin/self@1.0.0; export waft:plugin/lifecycle@1.0.0;",
        packages: `package waft:plugin@1.0.0 {
        interface self { enum level { error, warn, info, debug, trace } log: func(level: level, text: string); }
        interface lifecycle { init: func(); stop: func(); }
      }`,
        provides: ["f i32->i32"],
      },
    );
    const host = hostOf([plugin], { log: (_, level, text) => void log.push(`${level} ${text}`) });
    const guest = () => ({ module: ENGINE.compile(GUEST), digest: guestModule(GUEST).digest });
    await (await host.startAsync(guest())).closeAsync();
    assert.deepEqual(log.splice(0), ["1 begins", "2 begins"]);
    const graph = await host.startAsync(guest());
    await assert.rejects(graph.callAsync({ deadline: 1500 }, "f", 1), /deadline|interrupted/);
    await graph.closeAsync();
    const [first, ...flood] = log;
    assert.equal(first, "1 begins");
    assert.ok(flood.length > 0 && flood.every((line) => line === "3 begins"), "no stop after a failure");
  },
);

Deno.test({
  name: "plugins in runners: the death of a process costs its plugin alone",
  ignore: process.platform !== "linux",
  ...options,
  fn: async () => {
    const { readdirSync, readFileSync } = await import("node:fs");
    const children = () =>
      readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((id) => {
        try {
          return readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1].split(" ")[1] === String(process.pid);
        } catch {
          return false;
        }
      });
    const before = new Set(children());
    const plugin = NUMBERS(
      "f: func(n: u32) -> u32;",
      `(func (export "${INTERFACE}#f") (param i32) (result i32) (local.get 0))`,
    );
    await withPlugin(plugin, GUEST, async (graph) => {
      assert.equal(await graph.callAsync({}, "f", 7), 7);
      const [child, ...others] = children().filter((id) => !before.has(id));
      assert.deepEqual(others, [], "one process for the plugin");
      process.kill(Number(child), "SIGKILL");
      const failure = await graph.callAsync({}, "f", 7).then(() => undefined, (error: unknown) => error);
      assert.ok(failure instanceof TrapError, String(failure));
      assert.equal(pluginOf(failure), PLUGIN);
    });
  },
});
