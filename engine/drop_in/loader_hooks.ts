/**
 * Loader hooks that turn `import * as m from "./a.wasm"` into a waft module. In: the host's hook mechanism, which is
 * synchronous hooks (Node 22.15, Deno), a hook thread (older Node, which loads this module there) or plugins (Bun).
 * Out: registered hooks that answer imports of `.wasm` files with JavaScript source (wasm_modules.ts), change source
 * phase imports (source_imports.ts), and pass on all others. On Deno, the hooks also replace node:wasi, because the
 * exports of Deno's own module cannot be changed.
 */
import { LateModule } from "../host/late_module.ts";
import { nodeModule } from "../host/process.ts";
import { withoutSourceImports } from "./source_imports.ts";
import { isWasmFile, moduleSource } from "./wasm_modules.ts";

/** File extension of this package's modules: `ts` in the sources, `js` in the npm package. */
const SUFFIX = import.meta.url.endsWith(".ts") ? "ts" : "js";

/** The result of a load hook. */
interface Loaded {
  format: "module";
  source: string;
  shortCircuit: true;
}

function loaded(url: string): Loaded {
  return { format: "module", source: moduleSource(url), shortCircuit: true };
}

/** The load hook for Node's hook thread. Rejects with the errors of moduleSource. */
export async function load(
  url: string,
  context: unknown,
  next: (url: string, context: unknown) => Promise<unknown>,
): Promise<unknown> {
  return isWasmFile(url) ? loaded(url) : changed(await next(url, context));
}

/** What other hooks or the host have loaded, with source phase imports that load waft's modules. */
function changed(result: unknown): unknown {
  const { format, source } = (result ?? {}) as { format?: unknown; source?: unknown };
  // Deno names no format.
  if (format !== undefined && format !== null && !String(format).startsWith("module")) return result;
  if (typeof source !== "string" && !ArrayBuffer.isView(source)) return result;
  const text = typeof source === "string" ? source : new TextDecoder().decode(source);
  const without = withoutSourceImports(text);
  return without === undefined ? result : { ...result as object, source: without };
}

/** A hook: returns its own result or calls the next hook. */
type Hook = (name: string, context: unknown, next: (name: string, context: unknown) => unknown) => unknown;

interface Hooks {
  registerHooks?(hooks: { resolve?: Hook; load: Hook }): { deregister(): void };
  register(specifier: string): void;
}

const resolveWasi: Hook = (specifier, context, next) =>
  specifier === "node:wasi" || specifier === "wasi"
    ? { url: new URL(`./wasi_module.${SUFFIX}`, import.meta.url).href, shortCircuit: true }
    : next(specifier, context);

interface BunPlugins {
  plugin(plugin: {
    name: string;
    setup(build: {
      onLoad(filter: { filter: RegExp }, load: (args: { path: string }) => { contents: string; loader: "js" }): void;
    }): void;
  }): void;
}

/** Node's module of hooks, if it runs them in a thread of their own; undefined on other hosts. */
function hookThread(): Hooks | undefined {
  if ("Bun" in globalThis) return undefined;
  const hooks = nodeModule("node:module") as unknown as Hooks;
  return hooks.registerHooks === undefined ? hooks : undefined;
}

/** Imports the module at `url` in the hook thread, too, if there is one. */
export function importInHookThread(url: string): void {
  hookThread()?.register(url);
}

/** Registers the hooks in this realm. */
export function registerHooks(): void {
  const bun = (globalThis as { Bun?: BunPlugins }).Bun;
  if (bun !== undefined) {
    const { pathToFileURL } = nodeModule("node:url");
    bun.plugin({
      name: "waft",
      setup: (build) =>
        build.onLoad({ filter: /\.wasm$/ }, ({ path }) => ({
          contents: moduleSource(pathToFileURL(path).href),
          loader: "js",
        })),
    });
    return;
  }
  if (hookThread() !== undefined) return importInHookThread(import.meta.url);
  const register = (nodeModule("node:module") as unknown as Required<Hooks>).registerHooks;
  const load: Hook = (url, context, next) => isWasmFile(url) ? loaded(url) : changed(next(url, context));
  if (!("Deno" in globalThis)) return void register({ load });
  const add = () => register({ resolve: resolveWasi, load });
  let added = add();
  LateModule.withoutHooks = (require) => {
    added.deregister();
    try {
      return require();
    } finally {
      added = add();
    }
  };
}
