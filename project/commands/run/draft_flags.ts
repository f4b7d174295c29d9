/**
 * The options that grant components drafts of WASI: `--config-var`, `--keyvalue`, `--keyvalue-redis`, `--logging`,
 * `--tls-client`. In: the flag values. Out: the interfaces. Apart from run_flags.ts, which fast runs load.
 */
import { writeText } from "@waft/engine/internal/host/process";
import { oneLine, UsageError } from "../../base/failure.ts";
import type { GrantedDrafts } from "../../ops/run/granted_drafts.ts";
import { parseVariable } from "./run_flags.ts";

/** The values of the options. */
interface DraftFlags {
  readonly configVar: readonly string[];
  readonly keyvalue?: boolean;
  readonly keyvalueRedis?: string;
  readonly logging?: boolean;
  readonly tlsClient?: boolean;
}

/** The maximum size of a store of wasi:keyvalue, in bytes. */
const STORE_BYTES = 64 << 20;

/** The draft interfaces that the flags grant; undefined without any. */
export function draftOptions(
  { configVar, keyvalue, keyvalueRedis: redis, logging, tlsClient: tls = false }: DraftFlags,
): GrantedDrafts | undefined {
  if (keyvalue === true && redis !== undefined) {
    throw new UsageError("--keyvalue and --keyvalue-redis exclude each other");
  }
  if (configVar.length === 0 && keyvalue !== true && redis === undefined && logging !== true && !tls) return undefined;
  const config = configVar.map((text) => parseVariable("--config-var", text));
  const log = (level: string, context: string, message: string) =>
    writeText(2, `${level} ${oneLine(context === "" ? message : `${context}: ${message}`)}\n`);
  return {
    ...(config.length === 0 ? {} : { config: Object.fromEntries(config) }),
    ...(keyvalue === true ? { keyvalueBytes: STORE_BYTES } : {}),
    ...(redis === undefined ? {} : { redis }),
    ...(logging === true ? { log } : {}),
    ...(tls ? { tls } : {}),
  };
}
