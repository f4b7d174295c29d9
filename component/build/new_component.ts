/**
 * Core module → component. In: a core module whose imports and exports are named after the items of a world, the world,
 * and adapters for imports of another kind. Out: a valid component in binary form, which imports the parts of the world
 * that the module uses, and exports all that the world exports.
 *
 * The component is written as text and translated. Lowered functions that use the memory of the main module exist
 * before it only as functions of the *shim*, a module of indirect calls; the *fixup*, a module with an element segment,
 * puts the functions into the shim's table once the main module has been instantiated. Adapters and destructors are
 * reached through the shim, too.
 */
import { InvalidError } from "@waft/engine/internal/errors";
import type { Export, Module } from "@waft/engine/internal/wasm/module";
import { type FuncType, funcTypeName, valTypeName } from "@waft/engine/internal/wasm/types";
import {
  funcId,
  type WitFunc,
  type WitInterface,
  type WitTypeDef,
  type WitWorld,
  type WorldItem,
} from "../wit/document.ts";
import { isWorldSection } from "../wit/from_component.ts";
import { MAIN_MODULE, REALLOC_NAMES, reduceAdapter, signatureOf } from "./adapter.ts";
import {
  type CallShape,
  elementHasRanges,
  liftedShape,
  type LiftMode,
  loweredShape,
  taskReturnUsesMemory,
} from "./call_shape.ts";
import { type Need, neededFor } from "./core_imports.ts";
import { exportedInterfaceText, interfaceTypes } from "./exported_interface.ts";
import { liveItems } from "./live_items.ts";
import { withoutCustoms } from "./module_sections.ts";
import { translated } from "./translated.ts";
import {
  funcParts,
  Identifiers,
  itemsInOrder,
  itemText,
  type Live,
  quoted,
  signatureText,
  TypeNames,
  typeText,
} from "./type_text.ts";
import { moduleWithWorlds, uniteWorlds, type WorldlyModule } from "./world_of_module.ts";

/** An adapter, for imports from the core module `name`. */
export interface Adapter {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Options of {@linkcode newComponent}. */
interface NewComponentOptions {
  /** The world of the module, if the module does not contain it. */
  readonly world?: WitWorld;
  readonly adapters?: readonly Adapter[];
}

/** Makes a component of a core module in binary form. Throws MalformedError and InvalidError that name the fault. */
export function newComponent(bytes: Uint8Array, { world, adapters = [] }: NewComponentOptions = {}): Uint8Array {
  const inputs = [moduleWithWorlds(bytes, world), ...adapters.map((adapter) => moduleWithWorlds(adapter.bytes))];
  if (inputs.every(({ worlds }) => worlds.length === 0)) {
    throw new InvalidError("the module contains no world: give one with --wit");
  }
  const users = inputs.map((input, k) => new CoreUser(k === 0 ? undefined : adapters[k - 1].name, input));
  return new Builder(uniteWorlds(inputs), users).build(withoutCustoms(bytes, isWorldSection));
}

/** A core module in the component. */
class CoreUser {
  /** The module name that an adapter serves; undefined for the main module. */
  readonly adapts: string | undefined;
  readonly module: Module;
  readonly encoding: string;
  readonly exports: ReadonlyMap<string, Export>;
  instance = "";

  constructor(adapts: string | undefined, { module, encoding }: WorldlyModule) {
    this.adapts = adapts;
    this.module = module;
    this.encoding = encoding;
    this.exports = new Map(module.exports.map((entry) => [entry.name, entry]));
  }

  get label(): string {
    return this.adapts === undefined ? "the module" : `the adapter ${this.adapts}`;
  }

  hasFunc(name: string): boolean {
    return this.exports.get(name)?.kind === "func";
  }

  signature(name: string): FuncType {
    return signatureOf(this.module, this.exports.get(name)!.index);
  }

  /** The allocator for the results of imports, or the parameters of exports. */
  realloc(side: "import" | "export"): string | undefined {
    return [`cabi_${side}_realloc`, ...REALLOC_NAMES].find((name) => this.hasFunc(name));
  }
}

/** The supply of an import of a core module. */
type Supply =
  | { readonly kind: "need"; readonly need: Need; readonly type: FuncType }
  | { readonly kind: "adapter"; readonly adapter: CoreUser; readonly name: string; readonly type: FuncType }
  | { readonly kind: "main"; readonly entry: Export }
  | { readonly kind: "memory" }
  | { readonly kind: "grow" }
  | { readonly kind: "unused"; readonly type: FuncType };

interface CoreImport {
  readonly module: string;
  readonly name: string;
  readonly supply: Supply;
}

/** An exported function of the world, and the core functions that implement it. */
interface Implementation {
  readonly user: CoreUser;
  readonly core: string;
  readonly mode: LiftMode;
  readonly callback: string | undefined;
  readonly postReturn: string | undefined;
}

/** A function behind the shim; `text` refers to it once its module has been instantiated. */
interface Slot {
  readonly text: string;
  readonly type: FuncType;
}

const START_MODULE = '(core module $start (import "" "" (func)) (start 0))';

/** Allocates whole pages for adapters, where the main module has no allocator. */
const GROW_MODULE = `(core module $grower (import "" "memory" (memory 0))
  (func (export "realloc") (param $old i32) (param $bytes i32) (param $align i32) (param $size i32) (result i32)
    (local $page i32)
    (if (local.get $old) (then unreachable))
    (local.set $page (memory.grow (i32.shr_u (i32.add (local.get $size) (i32.const 65535)) (i32.const 16))))
    (if (i32.eq (local.get $page) (i32.const -1)) (then unreachable))
    (i32.shl (local.get $page) (i32.const 16))))`;

class Builder {
  readonly #world: WitWorld;
  readonly #main: CoreUser;
  readonly #adapters: readonly CoreUser[];
  readonly #ids = new Identifiers();
  readonly #imported = new TypeNames();
  readonly #exported = new TypeNames(this.#imported);
  readonly #lines: string[] = [];
  readonly #slots: Slot[] = [];
  readonly #slotsByText = new Map<string, number>();
  readonly #unused: FuncType[] = [];
  /** Identifiers of component functions and core functions, by the text that defines them. */
  readonly #defined = new Map<string, string>();
  /** Identifiers of imported instances, by name. */
  readonly #instances = new Map<string, string>();
  /** Types of exported interfaces that others use. */
  readonly #usedByExports = new Set<WitTypeDef>();
  #usesMemory = false;

  constructor(world: WitWorld, [main, ...adapters]: readonly CoreUser[]) {
    this.#world = world;
    for (const item of world.exports.values()) {
      if (item.kind !== "interface") continue;
      for (const { type } of item.interface.types.values()) {
        if (type.kind === "use") this.#usedByExports.add(type.target);
      }
    }
    this.#main = main;
    this.#adapters = adapters;
  }

  build(mainBytes: Uint8Array): Uint8Array {
    const implementations = this.#implementations();
    const { imports, modules } = this.#coreImports(implementations);
    const live = this.#live(imports);
    this.#import(live);
    const coreModules = [this.#main, ...this.#adapters].map((_, k) => `(core module $module${k})`);
    const types = this.#collect(() => this.#exportedTypes());
    const mainArgs = this.#collect(() => this.#instantiate(this.#main, 0, imports[0]));
    const adapters = this.#collect(() => this.#instantiateAdapters(imports));
    const fixup = this.#collect(() => this.#fixUp());
    const exports = this.#collect(() => this.#export(implementations));
    const text = [
      ...this.#lines,
      ...coreModules,
      ...this.#shim(),
      ...types,
      ...mainArgs,
      ...this.#memory(),
      ...adapters,
      ...fixup,
      ...exports,
    ];
    return translated(`(component\n${text.join("\n")})`, { modules: [mainBytes, ...modules] });
  }

  /** The lines that `write` adds. */
  #collect(write: () => void): string[] {
    const start = this.#lines.length;
    write();
    return this.#lines.splice(start);
  }

  /** Defines what `text` means once; returns its identifier. */
  #define(prefix: string, text: string, line: (id: string) => string): string {
    let id = this.#defined.get(text);
    if (id === undefined) {
      this.#defined.set(text, id = this.#ids.fresh(prefix));
      this.#lines.push(line(id));
    }
    return id;
  }

  // Exports of the world and the core functions that implement them.

  #implementations(): Map<WitFunc, Implementation> {
    const found = new Map<WitFunc, Implementation>();
    for (const [key, item] of this.#world.exports) {
      const funcs = item.kind === "interface" ? item.interface.funcs.values() : item.kind === "func" ? [item.func] : [];
      for (const func of funcs) {
        const name = item.kind === "func" ? funcId(func) : `${key}#${funcId(func)}`;
        found.set(func, this.#implementation(name, func));
      }
    }
    return found;
  }

  #implementation(name: string, func: WitFunc): Implementation {
    const modes = {
      [name]: "sync",
      [`[async-lift]${name}`]: "callback",
      [`[async-lift-stackful]${name}`]: "stackful",
    } as const;
    for (const user of [this.#main, ...this.#adapters]) {
      for (const [core, mode] of Object.entries(modes)) {
        if (!user.hasFunc(core)) continue;
        const callback = mode === "callback" ? `[callback]${core}` : undefined;
        if (callback !== undefined) this.#requireFunc(user, callback, `the function ${core}`);
        this.#checkSignature(user, core, liftedShape(func, mode));
        const post = `cabi_post_${name}`;
        return { user, core, mode, callback, postReturn: user.hasFunc(post) ? post : undefined };
      }
    }
    throw new InvalidError(`the module does not export \`${name}\`, which the world ${this.#world.name} exports`);
  }

  #requireFunc(user: CoreUser, name: string, reason: string): void {
    if (!user.hasFunc(name)) throw new InvalidError(`${user.label} does not export \`${name}\`, which ${reason} needs`);
  }

  #checkSignature(user: CoreUser, name: string, shape: CallShape): void {
    checkType(user.signature(name), shape, `the export \`${name}\` of ${user.label}`);
  }

  // Imports of the core modules.

  /** The supplies of each module's imports, and the adapters reduced to the exports in use. */
  #coreImports(
    implementations: ReadonlyMap<WitFunc, Implementation>,
  ): { imports: CoreImport[][]; modules: Uint8Array[] } {
    const imports = [this.#main.module.imports.map(({ module, name, desc }): CoreImport => {
      const adapter = this.#adapters.find(({ adapts }) => adapts === module);
      if (desc.kind !== "func") {
        throw new InvalidError(
          `the module imports the ${desc.kind} \`${module}\` \`${name}\`; a component can provide functions only`,
        );
      }
      const type = typeAt(this.#main.module, desc.typeIndex);
      if (adapter === undefined) return { module, name, supply: this.#need(this.#main, module, name, type) };
      this.#requireFunc(adapter, name, "the module");
      checkSame(adapter.signature(name), type, `the export \`${name}\` of ${adapter.label}`);
      return { module, name, supply: { kind: "adapter", adapter, name, type } };
    })];
    const modules: Uint8Array[] = [];
    for (const adapter of this.#adapters) {
      const used = this.#usedExports(adapter, imports[0], implementations);
      const { bytes, imports: live } = reduceAdapter(adapter.adapts!, adapter.module, used);
      const isLive = (module: string, name: string) => live.some((row) => row.module === module && row.name === name);
      modules.push(bytes);
      imports.push(adapter.module.imports.map(({ module, name, desc }) => {
        if (desc.kind === "func" && !isLive(module, name)) {
          return { module, name, supply: { kind: "unused", type: typeAt(adapter.module, desc.typeIndex) } };
        }
        return { module, name, supply: this.#adapterSupply(adapter, module, name, desc) };
      }));
    }
    return { imports: imports.map(distinct), modules };
  }

  #usedExports(
    adapter: CoreUser,
    imports: readonly CoreImport[],
    implementations: ReadonlyMap<WitFunc, Implementation>,
  ): Set<string> {
    const used = new Set<string>();
    for (const { supply } of imports) {
      if (supply.kind === "adapter" && supply.adapter === adapter) used.add(supply.name);
    }
    for (const { user, core, callback, postReturn } of implementations.values()) {
      if (user === adapter) { for (const name of [core, callback, postReturn]) if (name !== undefined) used.add(name); }
    }
    for (const side of ["import", "export"] as const) {
      const realloc = adapter.realloc(side);
      if (realloc !== undefined) used.add(realloc);
    }
    return used;
  }

  #adapterSupply(adapter: CoreUser, module: string, name: string, desc: Module["imports"][number]["desc"]): Supply {
    if (desc.kind === "memory" && module === "env" && name === "memory") {
      this.#usesMemory = true;
      return { kind: "memory" };
    }
    if (module === MAIN_MODULE) return this.#mainSupply(adapter, name, desc.kind);
    if (desc.kind !== "func") {
      throw new InvalidError(
        `${adapter.label} imports the ${desc.kind} \`${module}\` \`${name}\`, which an adapter cannot`,
      );
    }
    return this.#need(adapter, module, name, typeAt(adapter.module, desc.typeIndex));
  }

  #mainSupply(adapter: CoreUser, name: string, kind: Export["kind"]): Supply {
    const isRealloc = REALLOC_NAMES.includes(name);
    const found = isRealloc ? this.#main.realloc("import") : name;
    const entry = found === undefined ? undefined : this.#main.exports.get(found);
    if (entry?.kind === kind) return { kind: "main", entry };
    if (isRealloc) {
      this.#usesMemory = true;
      return { kind: "grow" };
    }
    throw new InvalidError(`the module does not export \`${name}\`, which ${adapter.label} needs`);
  }

  #need(user: CoreUser, module: string, name: string, type: FuncType): Supply {
    const need = neededFor(this.#world, module, name);
    if (need.kind === "func") {
      const subject = `the import \`${module}\` \`${name}\` of ${user.label}`;
      checkType(type, loweredShape(need.func, need.async), subject);
    }
    return { kind: "need", need, type };
  }

  /** The parts of the world that the core modules use. */
  #live(imports: readonly (readonly CoreImport[])[]): Live {
    const needs = imports.flat().flatMap(({ supply }) => supply.kind === "need" ? [supply.need] : []);
    return liveItems(this.#world, needs);
  }

  /** Imports of the component. */
  #import(live: Live): void {
    for (const [key, item] of itemsInOrder(this.#world.imports)) {
      if (!isLive(item, live)) continue;
      const { text, id } = itemText(key, item, "import", live, this.#imported, this.#ids);
      this.#lines.push(text);
      this.#instances.set(key, id);
    }
  }

  /** The types that exported interfaces define, in the scope of the component. */
  #exportedTypes(): void {
    for (const [key, item] of itemsInOrder(this.#world.exports)) {
      if (item.kind !== "interface") continue;
      for (const def of item.interface.types.values()) if (def.type.kind === "resource") this.#resource(key, def);
      this.#lines.push(...interfaceTypes(item.interface, this.#exported, this.#ids));
    }
  }

  #resource(key: string, def: WitTypeDef): void {
    const name = `${key}#[dtor]${def.name}`;
    const user = [this.#main, ...this.#adapters].find((each) => each.hasFunc(name));
    let dtor = "";
    if (user !== undefined) {
      const slot = this.#slot(`(core func ${this.#instanceOf(user)} ${quoted(name)})`, user.signature(name));
      dtor = ` (dtor ${slot})`;
    }
    const id = this.#ids.fresh("r");
    this.#exported.set(def, id);
    this.#lines.push(`(type ${id} (resource (rep i32)${dtor}))`);
  }

  #instanceOf(user: CoreUser): string {
    return user.instance ||= user === this.#main ? "$main" : this.#ids.fresh("adapter");
  }

  // Core functions.

  /** The shim's function that will call the function `text`. */
  #slot(text: string, type: FuncType): string {
    let slot = this.#slotsByText.get(text);
    if (slot === undefined) {
      slot = this.#slots.push({ text, type }) - 1;
      this.#slotsByText.set(text, slot);
    }
    return `(core func $shim "${slot}")`;
  }

  /** Instantiates a core module; its imports are instances of their functions. */
  #instantiate(user: CoreUser, at: number, imports: readonly CoreImport[]): void {
    const groups = new Map<string, string[]>();
    for (const { module, name, supply } of imports) {
      const rows = groups.get(module) ?? [];
      groups.set(module, rows);
      rows.push(`(export ${quoted(name)} ${this.#supplied(user, supply)})`);
    }
    const args = [...groups].map(([module, rows]) => {
      const id = this.#ids.fresh("args");
      this.#lines.push(`(core instance ${id} ${rows.join("\n  ")})`);
      return ` (with ${quoted(module)} (instance ${id}))`;
    });
    this.#lines.push(`(core instance ${this.#instanceOf(user)} (instantiate $module${at}${args.join("")}))`);
  }

  /** The memory of the main module, if canonical definitions or adapters use it. */
  #memory(): string[] {
    if (!this.#usesMemory) return [];
    if (this.#main.exports.get("memory")?.kind !== "memory") {
      throw new InvalidError("the module does not export its memory as `memory`, which values in memory need");
    }
    return ['(alias core export $main "memory" (core memory $memory))'];
  }

  /** The text that refers to the supply of an import; the sort is without `core`. */
  #supplied(user: CoreUser, supply: Supply): string {
    switch (supply.kind) {
      case "memory":
        return "(memory $memory)";
      case "grow":
        return '(func $grow "realloc")';
      case "main":
        return `(${supply.entry.kind} $main ${quoted(supply.entry.name)})`;
      case "adapter": {
        const target = `(core func ${this.#instanceOf(supply.adapter)} ${quoted(supply.name)})`;
        return withoutCore(this.#slot(target, supply.type));
      }
      case "unused":
        return `(func $unused "${this.#unused.push(supply.type) - 1}")`;
      case "need":
        return withoutCore(this.#needed(user, supply.need, supply.type));
    }
  }

  #needed(user: CoreUser, need: Need, type: FuncType): string {
    const { text, isLate } = this.#canon(user, need);
    if (isLate) return this.#slot(`(canon) ${text}`, type);
    return `(core func ${this.#define("c", text, (id) => `(core func ${id} (canon ${text}))`)})`;
  }

  /** A canonical definition, and whether it refers to the main module. */
  #canon(user: CoreUser, need: Need): { text: string; isLate: boolean } {
    switch (need.kind) {
      case "builtin":
        return this.#withOptions(user, need.text, need.usesMemory, false);
      case "resource": {
        const names = need.home.side === "imports" ? this.#imported : this.#exported;
        return { text: `${need.builtin} ${names.get(need.def)}`, isLate: false };
      }
      case "func": {
        const { usesMemory, usesRealloc } = loweredShape(need.func, need.async);
        const func = this.#component(need);
        return this.#withOptions(user, `lower (func ${func})${need.async ? " async" : ""}`, usesMemory, usesRealloc);
      }
      case "task.return": {
        const { result } = funcParts(need.func);
        const type = result === undefined ? "" : ` (result ${this.#typeText(need, result)})`;
        return this.#withOptions(user, `task.return${type}`, taskReturnUsesMemory(need.func), false);
      }
      case "channel":
        return this.#channel(user, need);
    }
  }

  #channel(user: CoreUser, need: Extract<Need, { kind: "channel" }>): { text: string; isLate: boolean } {
    const type = this.#typeText(need, need.type);
    const id = this.#define("s", type, (id) => `(type ${id} ${type})`);
    const text = `${need.builtin} ${id}${need.async ? " async" : ""}`;
    const { element } = need.type;
    const moves = /\.(?:read|write)$/.test(need.builtin);
    if (!moves) return { text, isLate: false };
    const usesRealloc = need.builtin.endsWith(".read") && elementHasRanges(element);
    return this.#withOptions(user, text, element !== undefined, usesRealloc);
  }

  #typeText(need: Extract<Need, { kind: "channel" | "task.return" }>, type: Parameters<typeof typeText>[0]): string {
    return typeText(type, need.home.side === "imports" ? this.#imported : this.#exported);
  }

  /** The identifier of an imported function. */
  #component({ home, func }: Extract<Need, { kind: "func" }>): string {
    const name = funcId(func);
    if (home.key === undefined) return this.#instances.get(name)!;
    const instance = this.#instances.get(home.key);
    const text = `${instance} ${quoted(name)}`;
    return this.#define("f", text, (id) => `(alias export ${text} (func ${id}))`);
  }

  #withOptions(
    user: CoreUser,
    text: string,
    usesMemory: boolean,
    usesRealloc: boolean,
  ): { text: string; isLate: boolean } {
    if (!usesMemory) return { text, isLate: false };
    return { text: `${text}${this.#options(user, usesRealloc ? "import" : undefined)}`, isLate: true };
  }

  #options(user: CoreUser, realloc: "import" | "export" | undefined): string {
    this.#usesMemory = true;
    const encoding = user.encoding === "utf8" ? "" : ` string-encoding=${user.encoding}`;
    if (realloc === undefined) return `${encoding} (memory $memory)`;
    const name = user.realloc(realloc);
    if (name === undefined) {
      throw new InvalidError(
        `${user.label} exports no \`cabi_realloc\`, which strings and lists that it receives need`,
      );
    }
    return `${encoding} (memory $memory) (realloc (core func ${this.#instanceOf(user)} ${quoted(name)}))`;
  }

  #instantiateAdapters(imports: readonly (readonly CoreImport[])[]): void {
    const grows = imports.flat().some(({ supply }) => supply.kind === "grow");
    if (grows) {
      this.#lines.push(GROW_MODULE);
      this.#lines.push(
        '(core instance $grow (instantiate $grower (with "" (instance (export "memory" (memory $memory))))))',
      );
    }
    const lines = this.#collect(() =>
      this.#adapters.forEach((adapter, k) => this.#instantiate(adapter, k + 1, imports[k + 1]))
    );
    if (this.#unused.length > 0) {
      const functions = this.#unused.map((type, k) => `(func (export "${k}")${signature(type)} unreachable)`);
      this.#lines.push(
        `(core module $unusedModule ${functions.join("\n")})`,
        "(core instance $unused (instantiate $unusedModule))",
      );
    }
    this.#lines.push(...lines);
  }

  /** The shim: functions that call those in its table. */
  #shim(): string[] {
    if (this.#slots.length === 0) return [];
    const functions = this.#slots.map(({ type }, k) => {
      const params = type.params.map((_, at) => `(local.get ${at})`).join(" ");
      return `(func (export "${k}")${signature(type)} (call_indirect${signature(type)} ${params} (i32.const ${k})))`;
    });
    const table = `(table (export "$imports") ${this.#slots.length} ${this.#slots.length} funcref)`;
    return [
      `(core module $shimModule ${table}\n${functions.join("\n")})`,
      "(core instance $shim (instantiate $shimModule))",
    ];
  }

  /** Fills the shim's table, and calls `_initialize` of the main module. */
  #fixUp(): void {
    if (this.#slots.length > 0) {
      const count = this.#slots.length;
      const args = this.#slots.map(({ text }, k) => `(export "${k}" ${withoutCore(this.#resolved(text))})`);
      const imports = this.#slots.map(({ type }, k) => `(import "" "${k}" (func${signature(type)}))`);
      const elements = this.#slots.map((_, k) => k).join(" ");
      this.#lines.push(
        `(core module $fixupModule (import "" "$imports" (table ${count} ${count} funcref))\n${
          imports.join("\n")
        }\n(elem (i32.const 0) func ${elements}))`,
        `(core instance (instantiate $fixupModule (with "" (instance (export "$imports" (table $shim "$imports"))\n${
          args.join("\n")
        }))))`,
      );
    }
    if (!this.#main.hasFunc("_initialize")) return;
    this.#lines.push(
      START_MODULE,
      '(core instance (instantiate $start (with "" (instance (export "" (func $main "_initialize"))))))',
    );
  }

  /** The function of a slot: a canonical definition, or an export of an instance. */
  #resolved(text: string): string {
    if (!text.startsWith("(canon) ")) return text;
    const canon = text.slice("(canon) ".length);
    return `(core func ${this.#define("c", canon, (id) => `(core func ${id} (canon ${canon}))`)})`;
  }

  // Exports of the component.

  #export(implementations: ReadonlyMap<WitFunc, Implementation>): void {
    for (const [key, item] of itemsInOrder(this.#world.exports)) {
      if (item.kind === "func") {
        const id = this.#lift(item.func, implementations.get(item.func)!);
        this.#lines.push(`(export ${quoted(key)} (func ${id}))`);
      } else if (item.kind === "interface") this.#exportInterface(key, item, item.interface, implementations);
    }
  }

  #exportInterface(
    key: string,
    item: WorldItem,
    target: WitInterface,
    implementations: ReadonlyMap<WitFunc, Implementation>,
  ): void {
    const { text, typeArgs } = exportedInterfaceText(target, this.#exported, this.#ids);
    const lifted = [...target.funcs.values()].map((func) => this.#lift(func, implementations.get(func)!));
    const component = this.#ids.fresh("component");
    const args = [
      ...typeArgs.map(({ name, id }) => `(with ${quoted(name)} (type ${id}))`),
      ...lifted.map((id, k) => `(with "import-func-${k}" (func ${id}))`),
    ];
    const instance = this.#ids.fresh("x");
    const externalId = item.externalId === undefined ? "" : ` (external-id ${quoted(item.externalId)})`;
    this.#lines.push(
      `(component ${component}\n${text})`,
      `(instance ${instance} (instantiate ${component} ${args.join("\n  ")}))`,
    );
    const exported = this.#ids.fresh("x");
    this.#lines.push(`(export ${exported} ${quoted(key)}${externalId} (instance ${instance}))`);
    // Interfaces that use the types refer to those of the export, which is where they have their names.
    for (const def of target.types.values()) {
      if (!this.#usedByExports.has(def)) continue;
      const id = this.#ids.fresh("t");
      this.#lines.push(`(alias export ${exported} ${quoted(def.name)} (type ${id}))`);
      this.#exported.set(def, id);
    }
  }

  #lift(func: WitFunc, { user, core, mode, callback, postReturn }: Implementation): string {
    const { usesMemory, usesRealloc } = liftedShape(func, mode);
    const instance = this.#instanceOf(user);
    const option = (word: string, name: string | undefined) =>
      name === undefined ? "" : ` (${word} (core func ${instance} ${quoted(name)}))`;
    const options = (mode === "sync" ? "" : " async") + option("callback", callback) +
      option("post-return", postReturn) +
      (usesMemory ? this.#options(user, usesRealloc ? "export" : undefined) : "");
    const id = this.#ids.fresh("l");
    const lifted = `(canon lift (core func ${instance} ${quoted(core)})${options})`;
    this.#lines.push(`(func ${id}${signatureText(func, this.#exported)} ${lifted})`);
    return id;
  }
}

function withoutCore(text: string): string {
  return text.replace("(core ", "(");
}

function isLive(item: WorldItem, { types, funcs }: Live): boolean {
  if (item.kind === "func") return funcs.has(item.func);
  if (item.kind === "type") return types.has(item.def);
  const { interface: target } = item;
  return [...target.types.values()].some((def) => types.has(def)) ||
    [...target.funcs.values()].some((func) => funcs.has(func));
}

/** One import per module and name. */
function distinct(imports: readonly CoreImport[]): CoreImport[] {
  return [...new Map(imports.map((entry) => [JSON.stringify([entry.module, entry.name]), entry])).values()];
}

function typeAt({ types }: Module, index: number): FuncType {
  const { composite } = types[index];
  if (composite.kind !== "func") throw new InvalidError("the type of an imported function is not a function type");
  return composite;
}

/** A core signature as text. */
function signature({ params, results }: FuncType): string {
  return params.map((type) => ` (param ${valTypeName(type)})`).join("") +
    results.map((type) => ` (result ${valTypeName(type)})`).join("");
}

function checkType(type: FuncType, { params, results }: CallShape, subject: string): void {
  const expected = `[${params.join(" ")}] -> [${results.join(" ")}]`;
  const found = funcTypeName(type);
  if (found !== expected) throw new InvalidError(`${subject} has the type ${found}; the world needs ${expected}`);
}

function checkSame(found: FuncType, expected: FuncType, subject: string): void {
  if (funcTypeName(found) === funcTypeName(expected)) return;
  throw new InvalidError(`${subject} has the type ${funcTypeName(found)}; the module needs ${funcTypeName(expected)}`);
}
