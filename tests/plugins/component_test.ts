/**
 * Plugins that are components: calls from modules and components, grants at WASI's interfaces, limits, and worlds that
 * cannot be linked.
 */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "@waft/engine";
import { decodeComponent } from "../../component/binary/decode.ts";
import { compileBinary } from "../../component/component.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { worldOf } from "../../project/definitions/component_inspector.ts";
import { InspectionError } from "../../project/definitions/module_inspector.ts";
import { digestBytes } from "../../project/base/integrity.ts";
import { PluginHost, pluginOf } from "../../project/plugins/plugin_host.ts";
import { CALLER, componentOf, componentPlugin, INTERFACE, MEMORY, TEXT_WAT, textPlugin } from "./component_plugin.ts";
import { CONTRACT, PLUGIN, projectOf, type TestPlugin, withPlugins } from "./plugin_project.ts";

const NS = `${CONTRACT}@1`;

/** The same, with `half` alone. */
const HALF_WAT = TEXT_WAT.replace(/\(func \(export "[^"]*#(?:add|last|twice)"\)/g, "(func");

/** The message of the error that `action` throws. */
function messageOf(action: () => void): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ProjectError) return error.diagnostics.map((d) => d.message).join("\n");
    return (error as Error).message;
  }
  return "ok";
}

/** The reason for which a project of these plugins and a guest is refused. */
function refusal(plugins: readonly TestPlugin[], guest = "(module)"): string {
  return messageOf(() => withPlugins(plugins, guest, () => {}));
}

Deno.test("component plugins: a module calls with numbers, strings, lists and results", () => {
  withPlugins([textPlugin()], CALLER, ({ call }) => {
    const text = (at: number, size: number) =>
      new TextDecoder().decode(Uint8Array.from({ length: size }, (_, i) => call("byte", at + i) as number));
    assert.equal(call("add", 40, -1), 39);
    assert.equal(call("last"), 0xffff);
    call("twice", 100, 5);
    assert.equal(text(call("word", 8) as number, call("word", 12) as number), "wäftwäft");
    call("half", 8);
    assert.deepEqual([call("byte", 8), call("word", 12)], [0, 4]);
    call("half", 3); // the error case is a value: the graph goes on
    assert.deepEqual([call("byte", 8), text(call("word", 12) as number, call("word", 16) as number)], [1, "odd"]);
    assert.equal(call("add", 1, 1), 2);
  });
});

Deno.test("component plugins: a bad pointer or bad text traps in the module that passed it", () => {
  for (const [at, size, reason] of [[0xfff0_0000 | 0, 4, /out of bounds/], [102, 1, /utf-?8/i]] as const) {
    withPlugins([textPlugin()], CALLER, ({ call }) => {
      assert.throws(() => call("twice", at, size), (error: Error) => {
        assert.ok(error instanceof TrapError);
        assert.match(error.message, reason);
        assert.equal(pluginOf(error), undefined);
        return true;
      });
    });
  }
});

Deno.test("component plugins: a caller without the exports that values need is refused before anything runs", () => {
  const [head, rest] = CALLER.split('  (func (export "cabi_realloc")') as [string, string];
  const noRealloc = `${head}  (func (export "other")${rest}`;
  assert.match(refusal([textPlugin()], noRealloc), /"twice".*string.*does not export "cabi_realloc"/);
  const noMemory = CALLER.replace('(memory (export "memory") 1)', "(memory 1)");
  assert.match(refusal([textPlugin()], noMemory), /does not export its memory as "memory"/);
  const wrong = CALLER.replace("(param i32 i32 i32 i32) (result i32)", "(param i64 i32 i32 i32) (result i32)");
  assert.match(refusal([textPlugin()], wrong), /"cabi_realloc" of type \[i32 i32 i32 i32\] -> \[i32\]/);
});

Deno.test("component plugins: cabi_realloc that calls back, fails or lies is a trap", () => {
  const realloc = (body: string) =>
    CALLER.replace(
      /\(func \(export "cabi_realloc"\)[^]*?\(local\.get \$at\)\)/,
      () => `(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) ${body})`,
    );
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      "(call $twice (i32.const 100) (i32.const 4) (i32.const 8)) (i32.const 0)",
      /cabi_realloc calls a function that allocates/,
    ],
    ["(unreachable)", /unreachable/],
    ["(i32.const -1)", /realloc returned a pointer that is out of bounds/],
  ];
  for (const [body, reason] of cases) {
    withPlugins([textPlugin()], realloc(body), ({ call }) => assert.throws(() => call("twice", 100, 4), reason));
  }
});

Deno.test("component plugins: a caller with a 64-bit memory is refused by a trap", () => {
  const guest =
    `(module (import "${NS}" "last" (func $last (param i32 i32) (result i32))) (memory (export "memory") i64 1)
    (func (export "last") (result i32) (call $last (i32.const 0) (i32.const 1))))`;
  withPlugins(
    [textPlugin()],
    guest,
    ({ call }) => assert.throws(() => call("last"), /caller's memory is a 64-bit one/),
  );
});

Deno.test("component plugins: init and stop, the configuration and the log", () => {
  const log: string[] = [];
  const plugin = componentPlugin(
    "n: func() -> u32;",
    `(module
      (import "waft:plugin/self@1.0.0" "config" (func $config (param i32)))
      (import "waft:plugin/self@1.0.0" "log" (func $log (param i32 i32 i32)))
      (import "waft:plugin/self@1.0.0" "granted" (func $granted (param i32 i32) (result i32)))
      ${MEMORY}
      (data (i32.const 100) "random")
      (func (export "waft:plugin/lifecycle@1.0.0#init") (call $config (i32.const 8))
        (call $log (i32.const 1) (i32.load (i32.const 8)) (i32.load (i32.const 12))))
      (func (export "waft:plugin/lifecycle@1.0.0#stop") (call $log (i32.const 2) (i32.const 100) (i32.const 6)))
      (func (export "${INTERFACE}#n") (result i32) (call $granted (i32.const 100) (i32.const 6))))`,
    {
      imports: "import waft:plugin/self@1.0.0; export waft:plugin/lifecycle@1.0.0;",
      packages: `package waft:plugin@1.0.0 {
        interface self {
          enum level { error, warn, info, debug, trace }
          config: func() -> string; log: func(level: level, text: string); granted: func(name: string) -> bool;
        }
        interface lifecycle { init: func(); stop: func(); }
      }`,
      provides: ["n ->i32"],
      config: { a: "x\ny" },
    },
  );
  const guest = `(module (import "${NS}" "n" (func $n (result i32))) (export "n" (func $n)))`;
  withPlugins([plugin], guest, ({ call }) => assert.equal(call("n"), 0), {
    log: (id, level, text) => void log.push(`${id} ${level} ${text}`),
  });
  assert.deepEqual(log, [`${PLUGIN} 1 {"a":"x\\ny"}`, `${PLUGIN} 2 random`]);
});

/** The text of a component whose world imports `name`, with no functions, and exports the interface with `n`. */
function importing(name: string, item = "(instance)"): string {
  return `(component (import "${name}" ${item})
    (core module $m (func (export "n") (result i32) (i32.const 1))) (core instance $i (instantiate $m))
    (func $n (result u32) (canon lift (core func $i "n")))
    (instance $x (export "n" (func $n))) (export "${INTERFACE}" (instance $x)))`;
}

const plain = { interface: INTERFACE, provides: ["n ->i32"] };

Deno.test("component plugins: interfaces without a row, a version or a request are refused by name", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["wasi:nn/tensor@0.2.0", /"wasi:nn\/tensor@0\.2\.0" cannot be linked: no authority opens this interface/],
    ["wasi:random/randon@0.2.0", /did you mean wasi:random\/random\?/],
    ["wasi:random/random@0.3.0", /have version 0\.2 of wasi:random\/random, not 0\.3\.0/],
    ["wasi:random/random@0.2.0-rc-2023-11-10", /have version 0\.2/],
    ["wasi:random/random", /not one without a version/],
    ["waft:plugin/self@2.0.0", /have version 1 of waft:plugin\/self, not 2\.0\.0/],
    ["acme:other/thing@1.0.0", /list it under consumes if another plugin provides it/],
    ["wasi:random/random@0.2.0", /needs random, which is not granted/],
    ["wasi:sockets/tcp@0.2.0", /needs net\.connect or net\.listen, which is not granted/],
    ["wasi:filesystem/types@0.2.0", /needs fs\.read or fs\.write, which is not granted/],
  ];
  for (const [name, reason] of cases) assert.match(refusal([{ wat: importing(name), ...plain }]), reason, name);
  assert.match(
    refusal([{ wat: importing("f", "(func)"), ...plain }]),
    /"f" cannot be linked: it is a func, not an interf/,
  );
  assert.equal(refusal([{ wat: importing("wasi:random/random@0.2.9"), ...plain, requests: { random: {} } }]), "ok");
  assert.match(
    refusal([{ wat: importing("wasi:io/poll@0.2.0"), ...plain, requests: { random: {} } }]),
    /random is requested but not used/,
  );
});

Deno.test("component plugins: a world other than the definition's is refused", () => {
  const wat = importing("wasi:random/random@0.2.0");
  const world = { imports: ["wasi:random/random@0.2.0"], exports: [INTERFACE] };
  const of = (more: Partial<TestPlugin>) => refusal([{ wat, ...plain, requests: { random: {} }, ...more }]);
  assert.equal(of({ world }), "ok");
  assert.match(
    of({ world: { ...world, imports: [] } }),
    /imports "wasi:random\/random@0\.2\.0", which its definition does not/,
  );
  assert.match(
    of({ world: { ...world, imports: [...world.imports, "wasi:io/poll@0.2.0"] } }),
    /lists the import "wasi:io\/poll@0\.2\.0", which the component does not have/,
  );
  assert.match(
    of({ world: { ...world, exports: [] } }),
    /exports "t:p\/x@1\.0\.0", which its definition does not list/,
  );
  assert.match(
    of({ provides: ["n ->i64"] }),
    /"n" of .* is \(\) -> \(i32\) for core modules; the contract says \(\) -> \(i64\)/,
  );
  assert.match(of({ provides: ["n ->i32", "m ->i32"] }), /has no function "m", which the contract lists/);
  assert.match(
    of({ interface: "t:p/y@1.0.0" }),
    /it provides t\.example\/c@1 but does not export the interface "t:p\/y@1\.0\.0"/,
  );
});

Deno.test("component plugins: functions that WASI's interface lacks are named, and nothing runs", () => {
  const wat = importing("wasi:random/random@0.2.0", `(instance (export "steal" (func (result string))))`);
  const message = refusal([{ wat, ...plain, requests: { random: {} } }]);
  assert.match(message, /t\.example\/p: .*wasi:random\/random@0\.2\.0#steal: func\(\) -> string/s);
});

Deno.test("component plugins: types that modules cannot pass, and asynchronous components, are refused", () => {
  const wat = `(component
    (type $r (resource (rep i32)))
    (core func $new (canon resource.new $r))
    (core module $m (import "" "new" (func $new (param i32) (result i32)))
      (func (export "n") (result i32) (call $new (i32.const 1))))
    (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
    (component $c (import "r" (type $r (sub resource))) (import "n" (func $n (result (own $r))))
      (export $e "r" (type $r)) (export "n" (func $n) (func (result (own $e)))))
    (func $n (result (own $r)) (canon lift (core func $i "n")))
    (instance $x (instantiate $c (with "r" (type $r)) (with "n" (func $n)))) (export "${INTERFACE}" (instance $x)))`;
  assert.match(
    refusal([{ wat, ...plain }]),
    /"n" of .* cannot be called by core modules: its type contains a resource/,
  );
  const waiting = `(component (core module $m (func (export "n"))) (core instance $i (instantiate $m))
    (func $n async (canon lift (core func $i "n") async)) (instance $x (export "n" (func $n)))
    (export "${INTERFACE}" (instance $x)))`;
  assert.throws(() => projectOf([{ wat: waiting, ...plain }], "."), InspectionError);
});

Deno.test("component plugins: an exit is a trap of the plugin, which ends the graph and not the guest's process", () => {
  const plugin = componentPlugin(
    "n: func();",
    `(module (import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))
      (func (export "${INTERFACE}#n") (call $exit (i32.const 0))))`,
    {
      imports: "import wasi:cli/exit@0.2.0;",
      packages: "package wasi:cli@0.2.0 { interface exit { exit: func(status: result); } }",
      provides: ["n ->"],
    },
  );
  const guest = `(module (import "${NS}" "n" (func $n)) (export "n" (func $n)))`;
  withPlugins([plugin], guest, ({ call }) => {
    assert.throws(() => call("n"), (error) => {
      assert.match((error as Error).message, /exit was called in plugin t\.example\/p/);
      assert.equal(pluginOf(error), PLUGIN);
      return true;
    });
    assert.throws(() => call("n"), /the instance graph is closed/);
  });
});

const CONSUMED = { id: CONTRACT, major: 1, interface: INTERFACE, mode: "required" as const };

Deno.test("component plugins: a component and a module consume a component; a component consumes no module", () => {
  const functions = [{ name: "half", params: ["i32", "i32"], results: [] }];
  const user: TestPlugin = {
    wat: componentOf(
      `interface x { half: func(n: u32) -> result<u32, string>; } interface y { quarter: func(n: u32) -> u32; }
       world w { import x; export y; }`,
      `(module (import "${INTERFACE}" "half" (func $half (param i32 i32))) ${MEMORY}
        (func (export "t:p/y@1.0.0#quarter") (param i32) (result i32)
          (call $half (local.get 0) (i32.const 8))
          (if (i32.load8_u (i32.const 8)) (then (return (i32.load (i32.const 16))))) ;; the length of the text
          (call $half (i32.load (i32.const 12)) (i32.const 8))
          (i32.load (i32.const 12))))`,
    ),
    id: "t.example/u",
    contract: "t.example/d",
    interface: "t:p/y@1.0.0",
    provides: ["quarter i32->i32"],
    consumes: [{ ...CONSUMED, functions }],
    bindings: { [NS]: [PLUGIN] },
  };
  const half = componentPlugin(
    "half: func(n: u32) -> result<u32, string>;",
    HALF_WAT,
    { provides: ["half i32,i32->"] },
  );
  const core: TestPlugin = {
    wat: `(module (import "t.example/d@1" "quarter" (func $q (param i32) (result i32)))
      (func (export "t.example/e@1#go") (param i32) (result i32) (call $q (local.get 0))))`,
    id: "t.example/core",
    contract: "t.example/e",
    provides: ["go i32->i32"],
    consumes: [{
      id: "t.example/d",
      major: 1,
      mode: "required",
      functions: [{ name: "quarter", params: ["i32"], results: ["i32"] }],
    }],
    bindings: { "t.example/d@1": ["t.example/u"] },
  };
  const guest = `(module (import "t.example/e@1" "go" (func $go (param i32) (result i32))) (export "go" (func $go)))`;
  withPlugins([half, user, core], guest, ({ call }) => {
    assert.equal(call("go", 20), 5);
    assert.equal(call("go", 7), 3);
    assert.equal(call("go", 40), 10);
  });
  const module: TestPlugin = {
    wat: `(module (func (export "${NS}#half") (param i32 i32)))`,
    provides: ["half i32,i32->"],
  };
  assert.match(refusal([module, user]), /t\.example\/p is a module, and components call plugins that are components/);
  const other = componentPlugin(
    "half: func(n: s32) -> result<u32, string>;",
    HALF_WAT,
    { provides: ["half i32,i32->"] },
  );
  assert.match(
    refusal([other, user]),
    /"half" is func\(n: s32\) -> .* in t\.example\/p, and func\(n: u32\) -> .* here/,
  );
});

/** Runs a component of the world `wit` with plugins. */
function withComponentGuest(
  plugins: readonly TestPlugin[],
  bytes: Uint8Array,
  work: (call: (name: string, ...args: unknown[]) => unknown) => void,
): void {
  const engine = NewEngine();
  const component = compileBinary(engine, bytes);
  const host = new PluginHost(projectOf(plugins, "."), engine);
  const graph = host.startComponent({
    digest: digestBytes(bytes),
    world: worldOf(decodeComponent(bytes)),
    instantiate: (context, provided) => component.instantiate(context, provided),
  });
  try {
    work((name, ...args) => graph.call({}, name, ...args));
  } finally {
    graph.close();
  }
}

/** An application with the world `w`, which imports the interface in `version` and exports `go`. */
function application(version: string, type = "func(n: u32) -> result<u32, string>"): Uint8Array {
  return componentOf(
    `world w { import a:p/x@${version}; export go: func(n: u32) -> u32; }
     package a:p@${version} { interface x { half: ${type}; } }`,
    `(module (import "a:p/x@${version}" "half" (func $half (param i32 i32))) ${MEMORY}
      (func (export "go") (param i32) (result i32) (call $half (local.get 0) (i32.const 8))
        (if (i32.load8_u (i32.const 8)) (then (return (i32.sub (i32.const 0) (i32.load (i32.const 16))))))
        (i32.load (i32.const 12))))`,
  );
}

Deno.test("component plugins: an application that is a component calls a plugin of a compatible version", () => {
  const namespaces = ["a:p/x@1.2.0"];
  const half = componentPlugin(
    "half: func(n: u32) -> result<u32, string>;",
    HALF_WAT,
    { provides: ["half i32,i32->"], namespaces, requests: { "import.define": { namespaces } } },
  );
  for (const version of ["1.2.0", "1.0.7", "1.9.0"]) {
    withComponentGuest([half], application(version), (call) => {
      assert.equal(call("go", 8), 4, version);
      assert.equal(call("go", 9), -3 >>> 0, version);
    });
  }
  const run = (bytes: Uint8Array) => messageOf(() => withComponentGuest([half], bytes, () => {}));
  assert.match(run(application("2.0.0")), /a:p\/x@2\.0\.0#half: func\(n: u32\)/);
  assert.match(
    run(application("1.2.0", "func(n: s32) -> result<u32, string>")),
    /the guest's import "a:p\/x@1\.2\.0": "half" is/,
  );
});

Deno.test("component plugins: an optional contract without a provider traps when it is called", () => {
  const functions = [{ name: "half", params: ["i32", "i32"], results: [] }];
  const user: TestPlugin = {
    wat: componentOf(
      `interface x { half: func(n: u32) -> result<u32, string>; } interface y { quarter: func(n: u32) -> u32; }
       world w { import x; export y; }`,
      `(module (import "${INTERFACE}" "half" (func $half (param i32 i32))) ${MEMORY}
        (func (export "t:p/y@1.0.0#quarter") (param i32) (result i32)
          (if (local.get 0) (then (call $half (local.get 0) (i32.const 8)))) (i32.const 0)))`,
    ),
    interface: "t:p/y@1.0.0",
    provides: ["quarter i32->i32"],
    consumes: [{ ...CONSUMED, id: "t.example/none", mode: "optional", functions }],
  };
  const guest = `(module (import "${NS}" "quarter" (func $q (param i32) (result i32))) (export "q" (func $q)))`;
  withPlugins([user], guest, ({ call }) => {
    assert.equal(call("q", 0), 0);
    assert.throws(() => call("q", 1), /t:p\/x@1\.0\.0 cannot be called by t\.example\/p: no provider is bound/);
  });
});
