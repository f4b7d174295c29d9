/**
 * Loader hooks that make `import * as m from "./a.wasm"` a waft module. In: the hosts' ways to add hooks, which differ: synchronous
 * ones (Node 22.15, Deno), a thread of hooks (older Node, which loads this module there), plugins (Bun). Out: `register`.
 */
import { nodeModule } from "../host/process.ts";
import { isWasmFile, moduleSource } from "./wasm_modules.ts";

/** What a hook returns. */
interface Loaded {
  format: "module";
  source: string;
  shortCircuit: true;
}

function loaded(url: string): Loaded {
  return { format: "module", source: moduleSource(url), shortCircuit: true };
}

/** The hook of Node's thread of hooks. */
export async function load(
  url: string,
  context: unknown,
  next: (url: string, context: unknown) => Promise<unknown>,
): Promise<unknown> {
  return isWasmFile(url) ? loaded(url) : await next(url, context);
}

interface Hooks {
  registerHooks?(
    hooks: { load(url: string, context: unknown, next: (url: string, context: unknown) => unknown): unknown },
  ): void;
  register(specifier: string): void;
}

interface BunPlugins {
  plugin(plugin: {
    name: string;
    setup(build: {
      onLoad(filter: { filter: RegExp }, load: (args: { path: string }) => { contents: string; loader: "js" }): void;
    }): void;
  }): void;
}

/** Adds the hooks to this realm. */
export function registerWasmHooks(): void {
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
  const hooks = nodeModule("node:module") as unknown as Hooks;
  if (hooks.registerHooks === undefined) return hooks.register(import.meta.url);
  hooks.registerHooks({ load: (url, context, next) => isWasmFile(url) ? loaded(url) : next(url, context) });
}
