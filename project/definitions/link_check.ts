/**
 * Checks the imports and exports of a module against its definition.
 *
 * Input: a definition and the imports and exports of its module. Output: findings. Every import must be linkable by a
 * requested authority, a consumed contract or the plugin's own namespace, with the exact type. Every request must be
 * used by an import, a hook or a provided namespace, which keeps reviews short. Every provided function must be
 * exported. Publish and check both run this; the engine's link table (plugins/plugin_grants.ts) refuses the same
 * imports at run time.
 */
import { ENGINE_CALLS, findAuthority, HOST_FUNCTIONS, HOST_NAMESPACES } from "./authorities.ts";
import { type ConsumedContract, contractNamespace, type Definition } from "./definition.ts";
import { type Diagnostic, quote } from "../base/diagnostic.ts";
import {
  formatType,
  type FunctionType,
  type InspectedModule,
  type ModuleImport,
  sameType,
} from "./module_inspector.ts";

/** Findings about a module; `file` names its entry. */
export function checkLinks(definition: Definition, module: InspectedModule, file: string): Diagnostic[] {
  const check = new LinkCheck(definition, module, file);
  for (const item of module.imports) check.checkImport(item);
  check.checkExports();
  check.checkUses();
  return check.found;
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

  /** Uses those of `authorities` that are requested; one of them must be, if there are any. */
  #useHost(authorities: readonly string[], name: string): void {
    const open = authorities.filter((a) => this.#requested.has(a));
    for (const authority of open) this.#used.add(authority);
    if (authorities.length === 0 || open.length > 0) return;
    const message = `the import ${name} needs ${authorities.join(" or ")}, which is not requested`;
    this.#add("unrequested", message, `add it to "authorities" with a reason`);
  }

  checkExports(): void {
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

/** The type of a consumed function; of many providers, the first parameter selects one, and `#count` counts them. */
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
