/**
 * Names of imports and exports (Explainer, "Import and Export Definitions"): labels in kebab case, annotated names,
 * interface names with versions; and the canonical form in which names must differ ("Name Uniqueness").
 */
import { invalid } from "./invalid.ts";

/** The parts of the name of an import or export. */
export type ExternName =
  | { readonly kind: "plain" }
  | { readonly kind: "constructor"; readonly resource: string }
  | { readonly kind: "method" | "static"; readonly resource: string; readonly label: string }
  | InterfaceName;

/** `namespace:package/interface@version`. */
interface InterfaceName {
  readonly kind: "interface";
  readonly namespace: string;
  readonly package: string;
  readonly interface: string;
  readonly version?: string;
}

const LABEL = /^(?:[a-z][0-9a-z]*|[A-Z][0-9A-Z]*)(?:-(?:[0-9a-z]+|[0-9A-Z]+))*$/;
const WORDS = /^[a-z][0-9a-z]*(?:-[0-9a-z]+)*$/;

/** Whether `text` is a label: kebab case, each word in lower or in upper case. */
export function isLabel(text: string): boolean {
  return LABEL.test(text);
}

/** Whether `text` is the name of a package or a namespace: kebab case in lower case. */
export function isWords(text: string): boolean {
  return WORDS.test(text);
}

/** Throws InvalidError unless `text` is a label; `subject` names it. */
export function checkLabel(text: string, subject: string, offset: number): void {
  if (text === "") throw invalid(`${subject} cannot be empty`, offset);
  if (!isLabel(text)) throw invalid(`${subject} \`${text}\` is not in kebab case`, offset);
}

/** The fault of a name, reported by its caller. */
class NameFault extends Error {}

function needLabel(text: string): string {
  if (!isLabel(text)) throw new NameFault(`\`${text}\` is not in kebab case`);
  return text;
}

function needWords(text: string): string {
  if (!isLabel(text) || !isWords(text)) throw new NameFault(`\`${text}\` is not in kebab case in lower case`);
  return text;
}

/** Parses the name of an import or export. Throws InvalidError that names the fault. */
export function parseExternName(name: string, offset: number): ExternName {
  return withFault(name, offset, () => {
    if (name.startsWith("[")) return parseAnnotated(name);
    if (name.includes(":")) return splitInterfaceName(name);
    needLabel(name);
    return { kind: "plain" };
  });
}

/** Parses an interface name. Throws InvalidError that names the fault. */
export function parseInterfaceName(name: string, offset: number): InterfaceName {
  return withFault(name, offset, () => splitInterfaceName(name));
}

function withFault<T>(name: string, offset: number, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof NameFault)) throw error;
    throw invalid(`\`${name}\` is not a valid extern name: ${error.message}`, offset);
  }
}

function parseAnnotated(name: string): ExternName {
  const [, annotation, rest] = /^\[([a-z]+)\]([^]*)$/.exec(name) ?? [];
  if (annotation === "constructor") return { kind: "constructor", resource: needLabel(rest) };
  if (annotation !== "method" && annotation !== "static") throw new NameFault(`\`${name}\` is not in kebab case`);
  const dot = rest.indexOf(".");
  if (dot < 0) throw new NameFault("failed to find `.` character");
  return { kind: annotation, resource: needLabel(rest.slice(0, dot)), label: needLabel(rest.slice(dot + 1)) };
}

function splitInterfaceName(name: string): InterfaceName {
  const colon = name.indexOf(":");
  if (colon < 0) throw new NameFault(`\`${name}\` is not the name of an interface`);
  const namespace = needWords(name.slice(0, colon));
  const rest = name.slice(colon + 1);
  const [packageName] = /^[^/@:]*/.exec(rest) ?? [""];
  needWords(packageName);
  if (rest[packageName.length] !== "/") throw new NameFault("expected `/` after package name");
  const [label] = /^[^/@:]*/.exec(rest.slice(packageName.length + 1)) ?? [""];
  needLabel(label);
  const tail = rest.slice(packageName.length + 1 + label.length);
  if (tail === "") return { kind: "interface", namespace, package: packageName, interface: label };
  if (!tail.startsWith("@")) throw new NameFault(`trailing characters found: \`${tail}\``);
  const version = tail.slice(1);
  const fault = isCanonicalVersion(version) ? undefined : versionFault(version);
  if (fault !== undefined) throw new NameFault(`\`${version}\` is not a version: ${fault}`);
  return { kind: "interface", namespace, package: packageName, interface: label, version };
}

const CANONICAL_VERSION = /^(?:[1-9][0-9]*|0\.[1-9][0-9]*|0\.0\.(?:0|[1-9][0-9]*))$/;

/** Whether `text` is the part of a version that compatible versions share (Explainer, "Canonical Interface Name"). */
export function isCanonicalVersion(text: string): boolean {
  return CANONICAL_VERSION.test(text);
}

const VERSION_PARTS = ["major", "minor", "patch"] as const;

/** The reason why `text` is not a semantic version; undefined if it is one. */
export function versionFault(text: string): string | undefined {
  if (text === "") return "empty string, expected a semantic version";
  let at = 0;
  for (const part of VERSION_PARTS) {
    const where = `while parsing ${part} version number`;
    const [digits] = /^[0-9]*/.exec(text.slice(at)) ?? [""];
    if (digits === "") {
      return at < text.length ? `unexpected character '${text[at]}' ${where}` : `unexpected end of input ${where}`;
    }
    if (digits.length > 1 && digits[0] === "0") return `invalid leading zero in ${part} version number`;
    if (BigInt(digits) > 0xffff_ffff_ffff_ffffn) return `value of ${part} version number exceeds 2^64 - 1`;
    at += digits.length;
    if (part === "patch") break;
    if (at >= text.length) {
      return `unexpected end of input while parsing ${part === "major" ? "minor" : "patch"} version number`;
    }
    if (text[at] !== ".") return `unexpected character '${text[at]}' after ${part} version number`;
    at++;
  }
  return suffixFault(text.slice(at));
}

function suffixFault(text: string): string | undefined {
  const [, preRelease, build, rest] = /^(?:-([0-9A-Za-z.-]*))?(?:\+([0-9A-Za-z.-]*))?([^]*)$/.exec(text) ?? [];
  if (rest !== "") return `unexpected character '${rest[0]}' after patch version number`;
  for (const [identifiers, what] of [[preRelease, "pre-release identifier"], [build, "build metadata"]] as const) {
    if (identifiers === undefined) continue;
    for (const identifier of identifiers.split(".")) {
      if (identifier === "") return `empty identifier segment in ${what}`;
      if (what === "pre-release identifier" && /^0[0-9]+$/.test(identifier)) return `invalid leading zero in ${what}`;
    }
  }
  return undefined;
}

/** The part of a version that compatible versions share. */
export function versionTrack(version: string): string {
  const [major, minor, patch] = version.split(/[-+]/)[0].split(".");
  if (version.includes("-")) return version;
  if (major !== "0") return major;
  return minor !== "0" ? `0.${minor}` : `0.0.${patch}`;
}

/** The form in which all names of imports, or of exports, of one scope must differ. */
export function canonicalName(name: string): string {
  const version = name.includes(":") ? name.indexOf("@") : -1;
  const lower = version < 0 ? name.toLowerCase() : name.slice(0, version).toLowerCase() + name.slice(version);
  const [, resource, label] = /^\[(?:method|static)\]([^.]*)\.([^]*)$/.exec(lower) ?? [];
  if (resource === undefined) return lower;
  return resource === label ? label : `${resource}.${label}`;
}
