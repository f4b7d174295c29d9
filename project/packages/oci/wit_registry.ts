/**
 * Packages of WIT in OCI registries, where `wkg` puts them. In: the name of a package, and the registry of its
 * namespace. Out: a reference. Invariants: a registry says itself, at its well-known address, which OCI registry and
 * which prefix it has; one that says nothing is an OCI registry; nothing is sent in clear text but to the loopback
 * interface.
 */
import { quote } from "../../base/diagnostic.ts";
import { type OciReference, parseReference } from "./reference.ts";
import { parseJson } from "./registry.ts";

/** The name of a package with its version. */
export interface VersionedPackage {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
}

/** An OCI registry, and the start of the names in it. */
export interface WitRegistry {
  readonly host: string;
  readonly prefix: string;
}

const WELL_KNOWN = ".well-known/wasm-pkg/registry.json";
const MAX_BYTES = 1 << 16;
const TIMEOUT_MS = 30_000;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i;

/** The OCI registry of `address`, a host with a port or without. Throws an Error if it cannot be found out. */
export async function witRegistry(
  address: string,
  send: typeof globalThis.fetch = fetch,
): Promise<WitRegistry> {
  if (!URL.canParse(`https://${address}/`) || new URL(`https://${address}/`).pathname !== "/") {
    throw new Error(`${quote(address, 80)} is not the host of a registry`);
  }
  const scheme = LOOPBACK.test(new URL(`https://${address}`).hostname) ? "http" : "https";
  const url = `${scheme}://${address}/${WELL_KNOWN}`;
  let response: Response;
  try {
    response = await send(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    const { cause, message } = error as Error;
    throw new Error(`cannot reach ${address}: ${cause instanceof Error ? cause.message : message}`);
  }
  if (response.status !== 200) {
    await response.body?.cancel();
    if (response.status === 404) return { host: address, prefix: "" };
    throw new Error(`${url} answers with status ${response.status}`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes.length > MAX_BYTES) throw new Error(`${url} has more than ${MAX_BYTES} bytes`);
  const { oci, ociRegistry, ociNamespacePrefix } = (parseJson(bytes, "registry's description") ?? {}) as {
    oci?: { registry?: unknown; namespacePrefix?: unknown };
    ociRegistry?: unknown;
    ociNamespacePrefix?: unknown;
  };
  const host = oci?.registry ?? ociRegistry;
  const prefix = oci?.namespacePrefix ?? ociNamespacePrefix ?? "";
  if (typeof host !== "string" || typeof prefix !== "string") throw new Error(`${url} names no OCI registry`);
  return { host, prefix };
}

/** The reference of a package. Throws UsageError for names that a registry cannot have. */
export function witReference(
  { host, prefix }: WitRegistry,
  { namespace, name, version }: VersionedPackage,
): OciReference {
  // Tags have no `+`, which begins the metadata of a build.
  return parseReference(`${host}/${prefix}${namespace}/${name}:${version.replaceAll("+", "_")}`);
}
