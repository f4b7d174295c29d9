/**
 * The proof of single executables: a folder with programs, and the command lines that run them. In: an empty folder.
 * Out: steps, in order; paths are relative to the folder, so that they hold on every system.
 */
import { copyFileSync, cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One command line. */
interface SingleStep {
  readonly label: string;
  /** The single executable, or the name of an executable that an earlier step wrote to the folder. */
  readonly program: "waft" | { readonly built: string };
  readonly args: readonly string[];
  /** Below the folder. */
  readonly directory: string;
  readonly says: RegExp;
  /** Whether the status is 2, that of wrong usage. */
  readonly fails: boolean;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILES = ["examples/fib.wat", "examples/wasi/threads.wasm", "tests/component/fixtures/hello.wat"];
const PLUGINS = ["kv", "log", "http"];
const PRIMES = /^17984 primes below 200000, found by 4 threads/m;

/** A guest that tries to remove the executable `rewrites`. */
const rewrites = (file: string): string =>
  `(module
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "${file}")
  (func (export "f") (result i32) (call $unlink (i32.const 3) (i32.const 0) (i32.const ${file.length}))))`;

/**
 * Files that runtimes read in the current directory: each would end every step, by a module that runs before waft, or
 * by a variable that makes it the child of the engine's self-test.
 */
const PLANTED = [
  ["bunfig.toml", 'preload = ["./planted.js"]\n[run]\npreload = ["./planted.js"]\n'],
  ["planted.js", "process.exit(99);\n"],
  [".env", "WAFT_SELF_TEST=running\n"],
  ["deno.json", '{ "imports": { "./cli.ts": "./planted.js" } }\n'],
  ["package.json", '{ "type": "commonjs", "imports": { "#*": "./planted.js" } }\n'],
  ["tsconfig.json", '{ "compilerOptions": { "paths": { "*": ["./planted.js"] } } }\n'],
] as const;

/** Places the programs and returns the steps. `suffix` is that of executables. */
export function singleSteps(folder: string, suffix: string): SingleStep[] {
  for (const file of FILES) copyFileSync(join(ROOT, file), join(folder, file.slice(file.lastIndexOf("/") + 1)));
  cpSync(join(ROOT, "examples/app"), join(folder, "app"), { recursive: true });
  for (const [name, text] of PLANTED) {
    for (const directory of ["", "app"]) writeFileSync(join(folder, directory, name), text);
  }
  for (const name of PLUGINS) {
    cpSync(join(ROOT, "examples/plugins", name), join(folder, "app/plugins", name), { recursive: true });
  }
  writeFileSync(join(folder, "rewrites.wat"), rewrites(`rewrites${suffix}`));
  writeFileSync(join(folder, "app/waft.json"), '{ "plugins": {} }\n');
  const paths = PLUGINS.map((name) => `./plugins/${name}`);
  const visit = ["run", "--offline", "--invoke", "visit", "visits.wasm"];
  const own = (label: string, args: readonly string[], says: RegExp, directory = ""): SingleStep => ({
    label,
    program: "waft",
    args,
    directory,
    says,
    fails: false,
  });
  const built = (name: string, args: readonly string[], says: RegExp): SingleStep => ({
    label: `run the built ${name}`,
    program: { built: `${name}${suffix}` },
    args,
    directory: "",
    says,
    fails: args.includes("seven"),
  });
  const build = (file: string, name: string, grants: readonly string[] = []): SingleStep =>
    own(`build ${file}`, ["build", file, "-o", `${name}${suffix}`, ...grants], /^$/);
  return [
    own("version", ["--version"], /^\d+\.\d+\.\d+/),
    own("a module by its name alone", ["fib.wat", "20"], /^6765$/m),
    own("help of a command in a command", ["help", "plugin", "grant"], /^Usage: waft plugin grant /),
    { ...own("a registry", ["registry", "serve"], /a single executable does not contain/), fails: true },
    own("a module", ["run", "fib.wat", "20"], /^6765$/m),
    own("a module from the cache", ["run", "fib.wat", "20"], /^6765$/m),
    own("a program with threads", ["run", "threads.wasm"], PRIMES),
    own("a component", ["run", "hello.wat"], /^hello/),
    own("add plugins", ["add", ...paths, "--allow-requested"], /kv/, "app"),
    own("a project with plugins", visit, /^1$/m, "app"),
    own("a project with plugins, again", visit, /^2$/m, "app"),
    build("fib.wat", "fib"),
    built("fib", ["30"], /^832040$/m),
    built("fib", ["seven"], /argument 1 of "fib": .*seven/),
    build("threads.wasm", "primes"),
    built("primes", [], PRIMES),
    build("hello.wat", "hello"),
    built("hello", [], /^hello/),
    build("rewrites.wat", "rewrites", ["--dir", ".", "--invoke", "f"]),
    built("rewrites", [], /^63$/m),
  ];
}
