/**
 * Checks the imports and exports of a module against its definition.
 *
 * In: a definition and the imports and exports of its module. Out: findings. Every import must be linkable by a
 * requested authority, a consumed contract or the plugin's own namespace, with the exact type. Every request must be
 * used by an import, a hook or a provided namespace, which keeps reviews short. Every provided function must be
 * exported. The world of a component must be the listed one, and each of its imported interfaces must have a row
 * (wit_interfaces.ts) or a consumed contract. Publish and check both run this; the engine's link table
 * (plugins/plugin_grants.ts) refuses the same imports at run time.
 */
import { ENGINE_CALLS, findAuthority, HOST_FUNCTIONS, HOST_NAMESPACES } from "./authorities.ts";
import { type ConsumedContract, contractNamespace, type Definition, type ProvidedContract } from "./definition.ts";
import { type Diagnostic, quote } from "../base/diagnostic.ts";
import {
  formatType,
  type FunctionType,
  type InspectedModule,
  type ModuleImport,
  sameType,
  type WorldItem,
} from "./module_inspector.ts";
import { hostInterface, isLifecycle, LIFECYCLE } from "./wit_interfaces.ts";

/** Findings about a module; `file` names its entry. */
export function checkLinks(definition: Definition, module: InspectedModule, file: string): Diagnostic[] {
  const check = new LinkCheck(definition, asCallersSee(definition, module), file);
  check.checkWorld();
  for (const item of module.imports) check.checkImport(item);
  check.checkExports();
  check.checkUses();
  return check.found;
}

/**
 * A component as core modules see it: it exports the functions of the contracts that it provides, under the names that
 * a module gives them. A module is returned unchanged.
 */
export function asCallersSee({ provides }: Pick<Definition, "provides">, module: InspectedModule): InspectedModule {
  const { world } = module;
  if (world === undefined) return module;
  const exports = provides.flatMap((contract) => {
    const item = world.exports.find(({ name, kind }) => name === contract.interface && kind === "interface");
    return (item?.functions ?? []).flatMap(({ name, type }) =>
      type === undefined ? [] : [{ name: `${contractNamespace(contract)}#${name}`, kind: "function" as const, type }]
    );
  });
  return { ...module, exports };
}

const CALLER = "waft:caller@1";
const CALLER_AUTHORITIES = ["caller.memory.read", "caller.memory.write"];

class LinkCheck {
  readonly found: Diagnostic[] = [];
  readonly #definition: Definition;
  readonly #module: InspectedModule;
  readonly #file: string;
  readonly #contracts: ReadonlyMap<string, ConsumedContract>;
  readonly #requested: ReadonlySet<string>;
  /** Requested authorities that an import uses. */
  readonly #used = new Set<string>();

  constructor(definition: Definition, module: InspectedModule, file: string) {
    this.#definition = definition;
    this.#module = module;
    this.#file = file;
    this.#contracts = new Map(definition.consumes.map((c) => [contractNamespace(c), c]));
    this.#requested = new Set(definition.authorities.map((a) => a.name));
  }

  #add(code: string, text: string, help?: string): void {
    const message = `${this.#definition.id}: ${text}`;
    const remedy = help === undefined ? {} : { help };
    this.found.push({ code: `link.${code}`, severity: "error", message, file: this.#file, ...remedy });
  }

  /** The definition must list exactly the world of the component, because reviews show the listed one. */
  checkWorld(): void {
    const { world } = this.#module;
    const listed = this.#definition.world;
    if (world === undefined) {
      if (listed !== undefined) this.#add("world", `its definition has a world, but the entry is a module`);
      return;
    }
    if (listed === undefined) {
      const help = "`waft plugin catalog` shows it";
      return this.#add("world", `the entry is a component, and its definition has no world`, help);
    }
    for (const side of ["imports", "exports"] as const) this.#compareWorld(side, listed[side], world[side]);
    for (const item of world.imports) this.#checkInterface(item);
    for (const item of world.exports) this.#checkExport(item);
    for (const contract of this.#definition.provides) {
      if (world.exports.some(({ name, kind }) => name === contract.interface && kind === "interface")) continue;
      const name = quote(contract.interface ?? "");
      this.#add("export", `it provides ${contractNamespace(contract)} but does not export the interface ${name}`);
    }
  }

  #compareWorld(side: "imports" | "exports", listed: readonly string[], items: readonly WorldItem[]): void {
    const verb = side.slice(0, -1);
    for (const { name } of items) {
      if (!listed.includes(name)) {
        this.#add("world", `the component ${verb}s ${quote(name)}, which its definition does not list`);
      }
    }
    for (const name of listed) {
      if (!items.some((item) => item.name === name)) {
        this.#add("world", `its definition lists the ${verb} ${quote(name)}, which the component does not have`);
      }
    }
  }

  #checkInterface(item: WorldItem): void {
    const name = quote(item.name);
    const contract = this.#definition.consumes.find((c) => c.interface === item.name);
    if (item.kind !== "interface") {
      return this.#add("import", `the import ${name} cannot be linked: it is a ${item.kind}, not an interface`);
    }
    if (contract !== undefined) return this.#checkFunctions(item, contract);
    const row = hostInterface(item.name);
    if (typeof row === "string") return this.#add("import", `the import ${name} cannot be linked: ${row}`);
    this.#useHost(row.authorities, name);
  }

  #checkExport(item: WorldItem): void {
    const contract = this.#definition.provides.find((c) => c.interface === item.name);
    if (contract !== undefined) return this.#checkFunctions(item, contract);
    if (!item.name.startsWith("waft:")) return;
    const name = quote(item.name);
    if (!isLifecycle(item.name)) {
      return this.#add(
        "export",
        `the export ${name} is not one that the engine calls; it calls ${LIFECYCLE.name}@1.0.0`,
      );
    }
    for (const f of item.functions) {
      const known = (LIFECYCLE.functions as readonly string[]).includes(f.name);
      if (known && f.signature === "func()") continue;
      this.#add("type", `${name} has the functions ${LIFECYCLE.functions.join(" and ")} of type func(), not ${f.name}`);
    }
  }

  /** A contract lists every function of its interface with the type that core modules see. */
  #checkFunctions(item: WorldItem, contract: ProvidedContract | ConsumedContract): void {
    for (const { name, type, fault } of item.functions) {
      const own = `the function ${quote(name)} of ${quote(item.name)}`;
      const listed = contract.functions.find((f) => f.name === name);
      if (fault !== undefined) this.#add("type", `${own} cannot be called by core modules: ${fault}`);
      else if (listed === undefined) this.#add("world", `${own} is not among the functions of the contract`);
      else if (!sameType(listed, type!)) {
        this.#add("type", `${own} is ${formatType(type!)} for core modules; the contract says ${formatType(listed)}`);
      }
    }
    for (const { name } of contract.functions) {
      if (!item.functions.some((f) => f.name === name)) {
        this.#add("world", `${quote(item.name)} has no function ${quote(name)}, which the contract lists`);
      }
    }
  }

  checkImport(item: ModuleImport): void {
    const name = `${quote(item.module)} ${quote(item.name)}`;
    const contract = this.#contracts.get(item.module);
    if (contract !== undefined) return this.#checkConsumed(item, name, contract);
    if (item.module === CALLER && item.name === "memory" && item.kind === "memory") return this.#useCallerMemory(name);
    const host = item.kind === "function" ? HOST_FUNCTIONS.get(`${item.module}#${item.name}`) : undefined;
    if (host === undefined) return this.#add("import", `the import ${name} cannot be linked`, remedyFor(item.module));
    if (!sameType(host.type, item.type!)) {
      this.#add("type", `the import ${name} is ${formatType(item.type!)}; it must be ${formatType(host.type)}`);
    }
    this.#useHost(host.authorities, name);
  }

  #checkConsumed(item: ModuleImport, name: string, contract: ConsumedContract): void {
    const type = consumedType(contract, item.name);
    if (type === undefined || item.kind !== "function") {
      this.#add("import", `the import ${name} is not among the functions of the consumed contract`);
    } else if (!sameType(type, item.type!)) {
      this.#add("type", `the import ${name} is ${formatType(item.type!)}; the contract says ${formatType(type)}`);
    }
  }

  #useCallerMemory(name: string): void {
    for (const needed of CALLER_AUTHORITIES) {
      if (!this.#requested.has(needed)) {
        this.#add("unrequested", `the import ${name} needs ${needed}, which is not requested`);
      }
      this.#used.add(needed);
    }
  }

  /** Marks the requested ones of `authorities` as used. Unless the list is empty, at least one must be requested. */
  #useHost(authorities: readonly string[], name: string): void {
    const open = authorities.filter((a) => this.#requested.has(a));
    for (const authority of open) this.#used.add(authority);
    if (authorities.length === 0 || open.length > 0) return;
    const message = `the import ${name} needs ${authorities.join(" or ")}, which is not requested`;
    this.#add("unrequested", message, `add it to "authorities" with a reason`);
  }

  checkExports(): void {
    if (this.#module.world !== undefined) return;
    const exports = new Map(this.#module.exports.map((e) => [e.name, e]));
    for (const contract of this.#definition.provides) {
      for (const f of contract.functions) {
        const name = quote(`${contractNamespace(contract)}#${f.name}`);
        const found = exports.get(`${contractNamespace(contract)}#${f.name}`);
        if (found?.kind !== "function") this.#add("export", `it provides ${name} but does not export that function`);
        else if (!sameType(found.type!, f)) {
          this.#add("type", `the export ${name} is ${formatType(found.type!)}; the contract says ${formatType(f)}`);
        }
      }
    }
    for (const [name, type] of Object.entries(ENGINE_CALLS)) {
      const found = exports.get(name);
      const right = found === undefined || found.kind === "function" && sameType(found.type!, type);
      if (!right) this.#add("type", `the export ${quote(name)} must be a function ${formatType(type)}`);
    }
  }

  /** Every request has a use: an import, a hook, or a provided namespace, which checkDefinition requires. */
  checkUses(): void {
    for (const { name } of this.#definition.authorities) {
      if (this.#used.has(name) || name === "import.define" || this.#exportsHookOf(name)) continue;
      const remedy = "remove the request: reviewers should see only required authorities";
      this.#add("unused", `${name} is requested but not used by the module`, remedy);
    }
  }

  #exportsHookOf(authority: string): boolean {
    const hooks = findAuthority(authority)?.hooks ?? [];
    return hooks.some((hook) => this.#module.exports.some((e) => e.name === `waft:hooks@1#${hook}`));
  }
}

/** The type of a consumed function. In mode `many`, the first parameter selects a provider; `#count` counts them. */
function consumedType({ functions, mode }: ConsumedContract, name: string): FunctionType | undefined {
  if (mode === "many" && name === "#count") return { params: [], results: ["i32"] };
  const declared = functions.find((f) => f.name === name);
  if (declared === undefined || mode !== "many") return declared;
  return { params: ["i32", ...declared.params], results: declared.results };
}

function remedyFor(namespace: string): string | undefined {
  if (HOST_NAMESPACES.has(namespace)) return undefined;
  return namespace === "env" || namespace.startsWith("wasi")
    ? `${quote(namespace)} is never linked for plugins; use the waft:* namespaces`
    : "list it under consumes if another plugin provides it";
}
