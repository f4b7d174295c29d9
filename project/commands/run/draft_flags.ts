/**
 * The options that grant components drafts of WASI: `--config-var`, `--keyvalue`, `--logging`. In: the flag values.
 * Out: the interfaces. Apart from run_flags.ts, which fast runs load.
 */
import type { DraftOptions } from "@waft/component/internal/wasi/drafts";
import { writeText } from "@waft/engine/internal/host/process";
import { oneLine } from "../../base/failure.ts";
import { parseVariable } from "./run_flags.ts";

/** The values of the options. */
interface DraftFlags {
  readonly configVar: readonly string[];
  readonly keyvalue?: boolean;
  readonly logging?: boolean;
}

/** The maximum size of a store of wasi:keyvalue, in bytes. */
const STORE_BYTES = 64 << 20;

/** The draft interfaces that the flags grant; undefined without any. */
export function draftOptions({ configVar, keyvalue, logging }: DraftFlags): DraftOptions | undefined {
  if (configVar.length === 0 && keyvalue !== true && logging !== true) return undefined;
  const config = configVar.map((text) => parseVariable("--config-var", text));
  const log = (level: string, context: string, message: string) =>
    writeText(2, `${level} ${oneLine(context === "" ? message : `${context}: ${message}`)}\n`);
  return {
    ...(config.length === 0 ? {} : { config: Object.fromEntries(config) }),
    ...(keyvalue === true ? { keyvalueBytes: STORE_BYTES } : {}),
    ...(logging === true ? { log } : {}),
  };
}
