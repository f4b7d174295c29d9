/**
 * Modules that synchronous code loads on first use. In: the location of a module and an import of it. Out: the module.
 * Invariant: once prepared, a module is returned without waiting for anything asynchronous.
 *
 * `require` loads an ES module synchronously, and returns the instance that `import` returns, on Deno, Bun and Node
 * from 20.19 and 22.12 on. Elsewhere (older Node versions, modules from the network, a program bundled into one file,
 * standalone executables, no permission to read the engine's files) `prepare` imports the module at once, before its
 * importer is evaluated.
 *
 * Deno 2.9 cannot require modules while module hooks are registered. The engine's own hooks are lifted meanwhile
 * (drop_in/loader_hooks.ts); hooks of the program are an Error that names them.
 *
 * Neither a late module nor any module that it imports may have a top-level `await`: `require` refuses those.
 */
import { nodeModule } from "./process.ts";
import { ownDeno as own } from "./globals.ts";

/** The suffix of the engine's modules: transpiled, they are JavaScript. */
export const SUFFIX: "ts" | "js" = import.meta.url.endsWith(".ts") ? "ts" : "js";

/** A module that is loaded on first use. */
export class LateModule<T extends object> {
  /** Modules by the ends of their paths, for programs in whose bundle they have no files of their own. */
  static #provided: Readonly<Record<string, object>> = {};

  /** All late modules of this realm. */
  static readonly #all: LateModule<object>[] = [];

  /** Imports all late modules now whose file names `isNeeded` accepts: nothing is loaded later. */
  static async loadAll(isNeeded: (file: string) => boolean): Promise<void> {
    for (const module of LateModule.#all) {
      const file = module.#url.pathname.slice(module.#url.pathname.lastIndexOf("/") + 1);
      if (module.#module === undefined && isNeeded(file)) await module.load();
    }
  }

  /** Gives late modules by their paths below the engine's folder: a program that is bundled has imported them. */
  static provide(modules: Readonly<Record<string, object>>): void {
    LateModule.#provided = { ...LateModule.#provided, ...modules };
  }

  /** Runs its argument, which requires a module, without the engine's own module hooks. */
  static withoutHooks: (require: () => unknown) => unknown = (require) => require();

  readonly #url: URL;
  readonly #import: () => Promise<T>;
  #module: T | undefined;
  #isUsed = false;

  /** `load` imports the module at `url` by a literal name, so that tools which follow imports find it. */
  constructor(url: URL, load: () => Promise<T>) {
    this.#url = url;
    this.#import = load;
    LateModule.#all.push(this);
  }

  /** The module. Throws an Error if it is not loaded yet and this host cannot load it synchronously. */
  get(): T {
    this.#isUsed = true;
    return this.#module ??= this.#given() ?? LateModule.withoutHooks(() => requireModule(this.#url)) as T;
  }

  /** Whether the module has been requested. */
  get isUsed(): boolean {
    return this.#isUsed;
  }

  /** Makes sure that `get` returns the module: imports it now where it could not be loaded later. */
  async prepare(): Promise<this> {
    if (this.#module === undefined && !canRequire(this.#url)) await this.load();
    return this;
  }

  #given(): T | undefined {
    const { href } = this.#url;
    const path = Object.keys(LateModule.#provided).find((name) => href.endsWith(`/${name}`));
    return path === undefined ? undefined : LateModule.#provided[path] as T;
  }

  /** Imports the module now. */
  async load(): Promise<void> {
    this.#module = this.#given() ?? await this.#import();
  }
}

/** Deno initializes its Node compatibility layer here, hence not before a module is needed. */
function requireModule(url: URL): unknown {
  const path = nodeModule("node:url").fileURLToPath(url);
  try {
    return nodeModule("node:module").createRequire(url)(path);
  } catch (cause) {
    if (own === undefined) {
      if (nodeModule("node:fs").existsSync(path)) throw cause;
      throw new Error(`Cannot load ${path}: mark @waft/engine as external in the options of the bundler.`, { cause });
    }
    const advice = "Deno cannot require modules while the process has module hooks (registerHooks of node:module): " +
      "remove the hooks for the call, or use this feature once before they are registered";
    throw new Error(`Cannot load ${path}: ${advice}.`, { cause });
  }
}

function canRequire(url: URL): boolean {
  if (url.protocol !== "file:" || !hostCanRequire()) return false;
  try {
    return own === undefined ? nodeModule("node:fs").existsSync(url) : own.statSync(url).isFile;
  } catch {
    return false;
  }
}

function hostCanRequire(): boolean {
  // The modules of a standalone executable are not files.
  if (own !== undefined) return !own.build.standalone;
  if (process.versions.bun !== undefined) return true;
  return (process.features as { require_module?: boolean }).require_module === true;
}
