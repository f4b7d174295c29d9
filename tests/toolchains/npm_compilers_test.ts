/**
 * Programs in AssemblyScript (with its own collector in linear memory), JavaScript compiled by porffor (exceptions),
 * and MoonBit (garbage-collected objects). The compilers come from npm; a test without its compiler is ignored with the
 * reason.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Call, compile, missing, npmTool, program, runEverywhere } from "./both_sides.ts";

function toolTest(tool: string, name: string, fn: (path: string, folder: string) => void | Promise<void>): void {
  const path = npmTool(tool);
  Deno.test({
    name: path === undefined ? `${name} (${missing(tool)})` : name,
    ignore: path === undefined,
    async fn() {
      const folder = mkdtempSync(join(tmpdir(), "waft-tool-"));
      try {
        await fn(path!, folder);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  });
}

/** The expected result of programs/objects.ts. */
function objects(n: number): number {
  const counts = new Map<string, number>();
  for (let i = 0; i < n; i++) {
    const key = `k${i % 97}-${i & 3}`;
    counts.set(key, ((counts.get(key) ?? 0) + i) | 0);
  }
  let sum = counts.size;
  for (const key of [...counts.keys()].sort()) sum = (Math.imul(sum, 31) + counts.get(key)! + key.length) | 0;
  for (let i = 0; i < n; i += 10) sum ^= i + `K${i % 97}-`.charCodeAt(1);
  return sum;
}

toolTest("assemblyscript", "AssemblyScript with its collector behaves as on V8", (path, folder) => {
  for (const runtime of ["incremental", "minimal"]) {
    const file = join(folder, `${runtime}.wasm`);
    const flags = ["--exportRuntime", "--use", "abort=", "--runtime", runtime, "--outFile", file];
    compile("node", [`${path}/bin/asc.js`, program("objects.ts"), "-O2", ...flags]);
    const text = runEverywhere(new Uint8Array(readFileSync(file)), () => ({}), (exports, say) => {
      for (const n of [10, 1000, 20000]) {
        say(`${(exports["run"] as Call)(n)} `);
        (exports["__collect"] as Call)();
      }
    });
    assert.equal(text, [10, 1000, 20000].map((n) => `${objects(n)} `).join(""), runtime);
  }
});

toolTest("porffor", "JavaScript compiled ahead of time behaves as on V8", (path, folder) => {
  const file = join(folder, "classes.wasm");
  compile("node", [`${path}/runtime/index.js`, "wasm", program("classes.js"), file]);
  const print = (say: (text: string) => void) => ({
    a: (value: unknown) => say(String(value)),
    b: (value: unknown) => say(String.fromCharCode(Number(value))),
  });
  const text = runEverywhere(new Uint8Array(readFileSync(file)), (say) => ({ "": print(say) }), (exports) => {
    (exports["m"] as Call)();
  });
  assert.match(text, /a has 0/);
  assert.match(text, /1-4-9-16-81/);
  assert.match(text, /DONE/);
});

/** An answer of the compiler's worker. */
interface Reply {
  readonly id: string;
  readonly value: { diagnostics?: string[]; core?: Uint8Array; result?: Uint8Array<ArrayBuffer> };
}

toolTest("@moonbit/moonc-worker", "MoonBit on garbage-collected objects behaves as on V8", async (path, folder) => {
  // The worker is a CommonJS script, which its file name must show.
  const script = join(folder, "moonc.cjs");
  copyFileSync(`${path}/moonc-worker.js`, script);
  const worker = new Worker(pathToFileURL(script), { type: "module" });
  let count = 0;
  const ask = (name: string, request: object): Promise<Reply["value"]> =>
    new Promise((resolve) => {
      const id = String(++count);
      worker.onmessage = ({ data }: MessageEvent<Reply>) => data.id === id && resolve(data.value);
      worker.onerror = (event) => event.preventDefault(); // from optional imports that are missing; it answers anyway
      worker.postMessage({ id, type: "APPLY", path: [name], argumentList: [{ type: "RAW", value: request }] });
    });
  try {
    const place = { target: "wasm-gc", pkgSources: ["demo:moonbit-app:/demo"], noOpt: false };
    const none = { miFiles: [], indirectImportMiFiles: [], stdMiFiles: [] };
    const source: [string, string] = ["trees.mbt", readFileSync(program("trees.mbt"), "utf8")];
    const how = { pkg: "demo", isMain: true, errorFormat: "human", enableValueTracing: false };
    const { core, diagnostics } = await ask("buildPackage", { mbtFiles: [source], ...none, ...place, ...how });
    assert(core !== undefined, diagnostics?.join(""));
    const form = {
      outputFormat: "wasm",
      testMode: false,
      debug: false,
      sourceMap: false,
      sources: {},
      stopOnMain: false,
    };
    const linking = { coreFiles: [core], main: "demo", exportedFunctions: ["run"], ...place, ...form };
    const { result } = await ask("linkCore", linking);
    const text = runEverywhere(result!, () => ({}), (exports, say) => {
      for (const n of [0, 1, 10, 1000, 20000]) say(`${(exports["run"] as Call)(n)} `);
    });
    assert.equal(text, "107 22579 148689 16306394 327793952 ");
  } finally {
    worker.terminate();
  }
});
