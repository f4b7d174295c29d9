/**
 * The drafts of WASI that options grant a component, as imports. In: options, and the WASI of the guest. Out: the
 * interfaces, and the connection behind them. What a store in Redis and TLS need is loaded only for them.
 */
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import type { ComponentWasi } from "@waft/component/wasi";
import { draftInterfaces, type DraftOptions } from "@waft/component/internal/wasi/drafts";
import { lateImports } from "../../base/late_import.ts";

const late = lateImports(import.meta.url);
const redisStore = late<typeof import("./redis_store.ts")>("./redis_store.ts");

/** The drafts that are granted. */
export interface GrantedDrafts extends DraftOptions {
  /** The address of a Redis database for wasi:keyvalue. */
  readonly redis?: string;
  /** Whether the component gets wasi:tls, for its own connections. */
  readonly tls?: boolean;
}

/** Interfaces for a component. */
interface OpenDrafts {
  readonly imports: ComponentImports;
  /** Whether functions of the interfaces return promises. */
  readonly mayWait: boolean;
  close(): void;
}

/** Opens what the drafts need. */
export async function openDrafts(
  { redis, tls = false, ...drafts }: GrantedDrafts = {},
  wasi: ComponentWasi,
): Promise<OpenDrafts> {
  const tlsImports = tls ? (await import("@waft/component/internal/wasi/tls")).tlsInterface(wasi) : {};
  if (redis === undefined) {
    return { imports: { ...draftInterfaces(drafts), ...tlsImports }, mayWait: tls, close: () => {} };
  }
  const { openRedis } = await redisStore();
  const { store, close } = await openRedis(redis);
  return { imports: { ...draftInterfaces({ ...drafts, keyvalue: store }), ...tlsImports }, mayWait: true, close };
}
