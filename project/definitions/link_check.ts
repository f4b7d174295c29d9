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
import { contractNamespace, type Definition } from "./definition.ts";
import { type Diagnostic, quote } from "../base/diagnostic.ts";
import { formatType, type FunctionType, type InspectedModule, sameType } from "./module_inspector.ts";

/** Findings about a module; `file` names its entry. */
export function checkLinks(definition: Definition, module: InspectedModule, file: string): Diagnostic[] {
  const found: Diagnostic[] = [];
  const add = (code: string, message: string, help?: string): void => {
    found.push({
      code: `link.${code}`,
      severity: "error",
      message: `${definition.id}: ${message}`,
      file,
      ...(help === undefined ? {} : { help }),
    });
  };
  const requested = new Set(definition.authorities.map((a) => a.name));
  const used = new Set<string>();
  const contracts = new Map(definition.consumes.map((c) => [contractNamespace(c), c]));

  for (const item of module.imports) {
    const name = `${quote(item.module)} ${quote(item.name)}`;
    const contract = contracts.get(item.module);
    if (contract !== undefined) {
      const declared = contract.functions.find((f) => f.name === item.name);
      const many = contract.mode === "many";
      const type: FunctionType | undefined = many && item.name === "#count"
        ? { params: [], results: ["i32"] }
        : declared === undefined
        ? undefined
        : many
        ? { params: ["i32", ...declared.params], results: declared.results }
        : declared;
      if (type === undefined || item.kind !== "function") {
        add("import", `the import ${name} is not among the functions of the consumed contract`);
      } else if (!sameType(type, item.type!)) {
        add("type", `the import ${name} is ${formatType(item.type!)}; the contract says ${formatType(type)}`);
      }
      continue;
    }
    if (item.module === "waft:caller@1" && item.name === "memory" && item.kind === "memory") {
      for (const needed of ["caller.memory.read", "caller.memory.write"]) {
        if (!requested.has(needed)) add("unrequested", `the import ${name} needs ${needed}, which is not requested`);
        used.add(needed);
      }
      continue;
    }
    const host = item.kind === "function" ? HOST_FUNCTIONS.get(`${item.module}#${item.name}`) : undefined;
    if (host === undefined) {
      const known = HOST_NAMESPACES.has(item.module);
      const help = known
        ? undefined
        : item.module === "env" || item.module.startsWith("wasi")
        ? `${quote(item.module)} is never linked for plugins; use the waft:* namespaces`
        : "list it under consumes if another plugin provides it";
      add("import", `the import ${name} cannot be linked`, help);
      continue;
    }
    if (!sameType(host.type, item.type!)) {
      add("type", `the import ${name} is ${formatType(item.type!)}; it must be ${formatType(host.type)}`);
    }
    const open = host.authorities.filter((a) => requested.has(a));
    for (const name of open) used.add(name);
    if (host.authorities.length > 0 && open.length === 0) {
      add(
        "unrequested",
        `the import ${name} needs ${host.authorities.join(" or ")}, which is not requested`,
        `add it to "authorities" with a reason`,
      );
    }
  }
  checkExports(definition, module, add);
  for (const request of definition.authorities) {
    const hooks = findAuthority(request.name)?.hooks ?? [];
    if (hooks.some((hook) => module.exports.some((e) => e.name === `waft:hooks@1#${hook}`))) used.add(request.name);
    // Its use is a provided namespace, which checkDefinition requires.
    if (request.name === "import.define") used.add(request.name);
    if (!used.has(request.name)) {
      add(
        "unused",
        `${request.name} is requested but not used by the module`,
        "remove the request: reviewers should see only required authorities",
      );
    }
  }
  return found;
}

function checkExports(
  definition: Definition,
  module: InspectedModule,
  add: (code: string, message: string, help?: string) => void,
): void {
  const exports = new Map(module.exports.map((e) => [e.name, e]));
  for (const contract of definition.provides) {
    for (const f of contract.functions) {
      const name = `${contractNamespace(contract)}#${f.name}`;
      const found = exports.get(name);
      if (found?.kind !== "function") add("export", `it provides ${quote(name)} but does not export that function`);
      else if (!sameType(found.type!, f)) {
        add("type", `the export ${quote(name)} is ${formatType(found.type!)}; the contract says ${formatType(f)}`);
      }
    }
  }
  for (const [name, type] of Object.entries(ENGINE_CALLS)) {
    const found = exports.get(name);
    const right = found === undefined || found.kind === "function" && sameType(found.type!, type);
    if (!right) add("type", `the export ${quote(name)} must be a function ${formatType(type)}`);
  }
}
