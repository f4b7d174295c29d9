/**
 * The extension of Visual Studio Code: its manifest repeats the launch arguments and names files that exist, its
 * grammar's expressions compile, and its code starts the adapter, here with the parts of the editor's interface that it
 * uses.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import process from "node:process";
import { ATTACH_ARGUMENTS, LAUNCH_ARGUMENTS } from "../../project/debug/launch_arguments.ts";

const FOLDER = new URL("../../editors/vscode/", import.meta.url);

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, FOLDER), "utf8")) as T;
}

interface Manifest {
  readonly main: string;
  readonly contributes: {
    readonly debuggers: readonly {
      readonly type: string;
      readonly configurationAttributes: {
        readonly launch: { readonly properties: object };
        readonly attach: { readonly properties: object };
      };
    }[];
    readonly languages: readonly { readonly configuration: string }[];
    readonly grammars: readonly { readonly path: string }[];
    readonly commands: readonly { readonly command: string }[];
    readonly problemMatchers: readonly { readonly pattern: { readonly regexp: string } }[];
  };
}

const MANIFEST = readJson<Manifest>("package.json");

Deno.test("the manifest has the launch arguments, and the files that it names are packed", () => {
  const { debuggers, languages, grammars } = MANIFEST.contributes;
  assert.deepEqual(debuggers[0].configurationAttributes.launch.properties, LAUNCH_ARGUMENTS);
  assert.deepEqual(debuggers[0].configurationAttributes.attach.properties, ATTACH_ARGUMENTS);
  const packed = readFileSync(new URL(".vscodeignore", FOLDER), "utf8").split("\n");
  for (const path of [MANIFEST.main, ...languages.map((l) => l.configuration), ...grammars.map((g) => g.path)]) {
    assert.ok(existsSync(new URL(path, FOLDER)), path);
    assert.ok(packed.includes(`!${path.slice(2)}`), `.vscodeignore keeps ${path}`);
  }
});

Deno.test("the grammar's expressions compile, and name what they should in a line", () => {
  const grammar = readJson<object>("syntaxes/wat.json");
  const rows: { readonly name?: string; readonly expression: RegExp }[] = [];
  JSON.stringify(grammar, (_, value) => {
    for (const key of ["match", "begin", "end"]) {
      if (value?.[key] !== undefined) rows.push({ name: value.name, expression: new RegExp(value[key], "g") });
    }
    return value;
  });
  const line = '(func $f (param $n i32) (br_if 0 (i32.const -0x1p3)) (drop (ref.null any)) "a\\n" ;; done';
  const found = (name: string): string[] =>
    rows.filter((row) => row.name === name).flatMap(({ expression }) => line.match(expression) ?? []);
  assert.deepEqual(found("keyword.control.wat"), ["br_if"]);
  assert.deepEqual(found("variable.other.wat"), ["$f", "$n"]);
  assert.deepEqual(found("constant.numeric.wat"), ["0", "-0x1p3"]);
  assert.deepEqual(found("entity.name.function.wat"), ["i32.const", "ref.null"]);
  assert.deepEqual(found("comment.line.double-semicolon.wat"), [";; done"]);
});

Deno.test("the problem matcher finds places in messages", () => {
  const pattern = new RegExp(MANIFEST.contributes.problemMatchers[0].pattern.regexp);
  const [, file, line, column, message] = pattern.exec("error: src/a.wat:3:14: unknown operator x")!;
  assert.deepEqual([file, line, column, message], ["src/a.wat", "3", "14", "unknown operator x"]);
});

/** What the extension registered, and what it showed. */
interface Registered {
  readonly factory: { createDebugAdapterDescriptor(session: object): Promise<{ command: string; args: string[] }> };
  readonly provider: { resolveDebugConfiguration(folder: undefined, configuration: object): object | undefined };
  readonly commands: Record<string, (uri?: object) => unknown>;
  readonly shown: string[];
}

/** Activates the extension in an editor whose setting waft.path is `path`. */
function activate(path: string, document?: { languageId: string; fileName: string }): Registered {
  const registered: Record<string, unknown> = {};
  const shown: string[] = [];
  const vscode = {
    commands: {
      registerCommand: (name: string, action: unknown) => registered.commands = { [name]: action },
    },
    debug: {
      registerDebugAdapterDescriptorFactory: (_: string, factory: unknown) => registered.factory = factory,
      registerDebugConfigurationProvider: (_: string, provider: unknown) => registered.provider = provider,
      startDebugging: (folder: unknown, configuration: unknown) => [folder, configuration],
    },
    DebugAdapterServer: class {
      constructor(readonly port: number, readonly host: string) {}
    },
    DebugAdapterExecutable: class {
      constructor(readonly command: string, readonly args: string[]) {}
    },
    window: {
      activeTextEditor: document === undefined ? undefined : { document },
      showErrorMessage: (message: string) => {
        shown.push(message);
        return Promise.resolve(undefined);
      },
    },
    workspace: { getConfiguration: () => ({ get: () => path }), getWorkspaceFolder: () => "the folder" },
  };
  const require = createRequire(import.meta.url);
  const module = { exports: {} as { activate(context: object): void } };
  const source = readFileSync(new URL(MANIFEST.main, FOLDER), "utf8");
  new Function("require", "module", "exports", source)(
    (name: string) => name === "vscode" ? vscode : require(name),
    module,
    module.exports,
  );
  module.exports.activate({ subscriptions: [] });
  return { ...registered, shown } as unknown as Registered;
}

Deno.test("F5 debugs the module in the editor, and the command a file in the explorer", () => {
  const { provider, commands } = activate("waft", { languageId: "wat", fileName: "/tmp/a.wat" });
  const launch = { type: "waft", request: "launch", name: "Debug a module", program: "/tmp/a.wat" };
  assert.deepEqual(provider.resolveDebugConfiguration(undefined, {}), launch);
  const own = { type: "waft", request: "launch", name: "Mine" };
  assert.equal(provider.resolveDebugConfiguration(undefined, own), own);
  assert.deepEqual(MANIFEST.contributes.commands.map((row) => row.command), Object.keys(commands));
  assert.deepEqual(commands["waft.debugFile"]({ fsPath: "/tmp/a.wat" }), ["the folder", launch]);
  assert.equal(activate("waft").provider.resolveDebugConfiguration(undefined, {}), undefined);
});

Deno.test("a command that does not start is named, with what to do", async () => {
  const { factory, shown } = activate("/no/such/waft");
  await assert.rejects(factory.createDebugAdapterDescriptor({}), /does not start \(ENOENT\): install waft/);
  assert.match(shown[0], /\/no\/such\/waft does not start \(ENOENT\): install waft, or set waft\.path/);
});

Deno.test("the extension starts the adapter of the command that the settings name", async () => {
  const { factory } = activate(process.execPath);
  const { command, args } = await factory.createDebugAdapterDescriptor({});
  assert.deepEqual([command, args], [process.execPath, ["debug", "--dap"]]);
});

Deno.test("the extension connects with the debug server of a running program", async () => {
  const { factory, shown } = activate("/no/such/waft");
  const configuration = { type: "waft", request: "attach", name: "Attach", port: 4711 };
  const { port, host } = await factory.createDebugAdapterDescriptor({ configuration }) as unknown as {
    port: number;
    host: string;
  };
  assert.deepEqual([port, host, shown], [4711, "127.0.0.1", []]);
  const without = { configuration: { ...configuration, port: undefined } };
  await assert.rejects(factory.createDebugAdapterDescriptor(without), /needs the port/);
});
