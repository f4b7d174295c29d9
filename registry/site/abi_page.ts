/**
 * The page about the host's functions for plugins, written from the table that the linker uses.
 *
 * In: project/definitions/authorities.ts and wit_interfaces.ts, and a name for each parameter. Out: Markdown. A test
 * compares names with types, so a function cannot be added or changed without this page.
 */
import {
  AUTHORITIES,
  ENGINE_CALLS,
  HOST_FUNCTIONS,
  type HostFunction,
  STATUS,
} from "../../project/definitions/authorities.ts";
import { formatType } from "../../project/definitions/module_inspector.ts";
import { HOST_INTERFACES, LIFECYCLE } from "../../project/definitions/wit_interfaces.ts";

/**
 * Names of parameters, and the result: `status`, `count` (a number, or a negated status on failure), or a description.
 */
export const FUNCTION_WORDS: { readonly [name: string]: readonly [params: string, result: string] } = {
  "waft:self@1#config-size": ["", "bytes of the configuration (canonical JSON)"],
  "waft:self@1#config-read": ["to, room", "bytes copied"],
  "waft:self@1#log": ["level, text, length", "nothing; levels 0 error, 1 warn, 2 info, 3 debug, 4 trace"],
  "waft:self@1#abort": ["text, length", "does not return: traps with this text"],
  "waft:hooks@1#subject-size": ["", "count"],
  "waft:hooks@1#subject-read": ["to, room", "count: the export's name, or the module's digest"],
  "waft:caller@1#memory-size": ["", "bytes; 0 without a memory"],
  "waft:caller@1#read": ["from, to, length", "status"],
  "waft:caller@1#write": ["to, from, length", "status"],
  "waft:caller@1#call": ["name, length, args, count, results, room", "status; values in cells of 8 bytes"],
  "waft:caller@1#module-digest": ["to", "status; writes the 32 bytes of the SHA-256"],
  "waft:caller@1#instance-number": ["", "count"],
  "waft:guest@1#args-count": ["", "count"],
  "waft:guest@1#arg-size": ["index", "count"],
  "waft:guest@1#arg-read": ["index, to, room", "count"],
  "waft:guest@1#env-size": ["name, length", "count"],
  "waft:guest@1#env-read": ["name, length, to, room", "count"],
  "waft:clock-wall@1#now": ["", "nanoseconds since 1970"],
  "waft:clock-wall@1#resolution": ["", "nanoseconds"],
  "waft:clock-monotonic@1#now": ["", "nanoseconds"],
  "waft:clock-monotonic@1#resolution": ["", "nanoseconds"],
  "waft:random@1#fill": ["to, length", "status"],
  "waft:stdio@1#read": ["to, room", "count; 0 at the end"],
  "waft:stdio@1#write": ["stream, from, length", "count; stream 1 is stdout, 2 is stderr"],
  "waft:fs@1#stat": [
    "path, length, to",
    "status; writes 24 bytes: kind (u32: 1 file, 2 directory, 0 other), 0 (u32), size, time of change in nanoseconds (u64)",
  ],
  "waft:fs@1#read": ["path, length, offset, to, room", "count; 0 at the end"],
  "waft:fs@1#list": [
    "path, length, to, room",
    "size of all names, each followed by a zero byte; written if they fit",
  ],
  "waft:fs@1#write": ["path, length, offset, from, count", "count; offset -1 appends"],
  "waft:fs@1#truncate": ["path, length, size", "status"],
  "waft:fs@1#rename": ["from, length, to, length", "status"],
  "waft:fs@1#remove": ["path, length", "status"],
  "waft:fs@1#make-dir": ["path, length", "status"],
  "waft:fs@1#sync": ["path, length", "status"],
  "waft:net@1#connect": ["host, length, port", "a handle, or a negated status"],
  "waft:net@1#connect-tls": ["host, length, port", "a handle, or a negated status"],
  "waft:net@1#listen": ["address, length, port", "a handle, or a negated status"],
  "waft:net@1#accept": ["handle", "a handle, or a negated status"],
  "waft:net@1#send": ["handle, from, length", "count"],
  "waft:net@1#receive": ["handle, to, room", "count; 0 at the end"],
  "waft:net@1#close": ["handle", "status"],
  "waft:instance@1#create": ["module, length", "a handle, or a negated status"],
  "waft:instance@1#call": ["handle, name, length, args, count, results, room", "status; values in cells of 8 bytes"],
  "waft:instance@1#close": ["handle", "status"],
};

const CALL_WORDS: { readonly [name: string]: string } = {
  "waft:self@1#init": "once, before the guest is instantiated; in load order",
  "waft:self@1#stop": "once, when the guest ends; in reverse order",
  "waft:hooks@1#before-call": "before each call of a guest's export",
  "waft:hooks@1#after-call": "after the call: 0 if it returned, 1 if it trapped or threw",
  "waft:hooks@1#intercept-call": "before the call: 0 allows it, any other value refuses it",
  "waft:hooks@1#module-compiled": "for each module that is compiled",
};

/** The page's Markdown. */
export function abiPage(): string {
  const namespaces = new Map<string, HostFunction[]>();
  for (const f of HOST_FUNCTIONS.values()) {
    const group = namespaces.get(f.namespace) ?? [];
    group.push(f);
    namespaces.set(f.namespace, group);
  }
  return [
    "# Plugin ABI",
    "",
    "Every function that a plugin can import from the host, its type and the authority that it needs, written from the " +
    "table that the linker uses. The list is complete: any other import that is not a contract of another " +
    "plugin is a link error before any code runs.",
    "",
    "## Conventions",
    "",
    "- Pointers and lengths are 32 bits wide and belong to the plugin's first own memory. Addresses of the caller are 64 " +
    "bits wide.",
    `- Statuses: ${
      Object.entries(STATUS).map(([name, code]) => `${code} ${STATUS_WORDS[name] ?? name}`).join(", ")
    }. ` +
    "Functions that return a count return a negated status on failure. Accesses out of bounds copy nothing.",
    "- The caller is the instance that made the innermost call into the plugin. Its memory is the one that it exports as " +
    "`memory`. `init`, `stop` and hooks have no caller. With both of the caller's memory authorities, a plugin may also " +
    'import it as `(import "waft:caller@1" "memory" (memory 0))`: it is bound during a call only.',
    "- Values of `call` occupy cells of 8 bytes: an i32 or f32 the low half, an i64 or f64 the whole cell.",
    "- Network calls block for at most 30 seconds.",
    "- When an optional authority was denied, its functions exist and return the value of the last column.",
    "",
    ...[...namespaces].flatMap(([namespace, functions]) => [
      `## ${namespace}`,
      "",
      "| Function | Returns | Authority | When denied |",
      "| --- | --- | --- | --- |",
      ...functions.map(functionRow),
      "",
    ]),
    "## Interfaces for components",
    "",
    "A plugin that is a component imports interfaces of WIT. Each needs one of the authorities beside it; releases of " +
    "other versions, and interfaces without a row, are link errors. What a denied authority opens fails as WASI says; " +
    "clocks and random bytes, whose functions cannot fail, trap.",
    "",
    "| Interface | Version | Authority |",
    "| --- | --- | --- |",
    ...[...HOST_INTERFACES.values()].map(({ name, version, authorities }) =>
      `| \`${name}\` | ${version} | ${authorities.map((a) => `\`${a}\``).join(" or ") || "none"} |`
    ),
    "",
    "## Functions that the host calls",
    "",
    "A plugin exports these under their full names; hooks need the authority beside them. A component exports " +
    `\`${LIFECYCLE.name}@1.0.0\` with ${LIFECYCLE.functions.map((name) => `\`${name}: func()\``).join(" and ")}, ` +
    "either of which it may omit; it has no hooks.",
    "",
    "| Export | Type | When | Authority |",
    "| --- | --- | --- | --- |",
    ...Object.entries(ENGINE_CALLS).map(([name, type]) => {
      const hook = name.split("#")[1];
      const needed = AUTHORITIES.filter((a) => a.hooks.includes(hook)).map((a) => `\`${a.name}\``).join(", ");
      return `| \`${name}\` | \`${formatType(type)}\` | ${CALL_WORDS[name]} | ${needed || "none"} |`;
    }),
    "",
    "## Authorities",
    "",
    "| Name | Allows to | Scope |",
    "| --- | --- | --- |",
    ...AUTHORITIES.map((a) => `| \`${a.name}\` | ${a.meaning} | ${a.scope === "none" ? "" : a.scope} |`),
    "",
  ].join("\n");
}

const STATUS_WORDS: { readonly [name: string]: string } = { bounds: "out of bounds", noMemory: "no memory" };

function functionRow(f: HostFunction): string {
  const [params, result] = FUNCTION_WORDS[`${f.namespace}#${f.name}`];
  const denied = f.authorities.length === 0
    ? "always available"
    : f.type.results.length === 0
    ? "nothing"
    : String(f.denied);
  const needed = f.authorities.map((name) => `\`${name}\``).join(" or ") || "none";
  const names = params.split(", ");
  const typed = f.type.params.map((type, i) => `${names[i]}: ${type}`).join(", ");
  const back = f.type.results.length === 0 ? "" : ` -> ${f.type.results.join(", ")}`;
  return `| \`${f.name}(${typed})${back}\` | ${result} | ${needed} | ${denied} |`;
}
