/**
 * Registry tokens on this machine: `waft login` stores them and publishing uses them.
 *
 * In: a registry's address. Out: its token; changes on disk. The tokens are in `credentials.json` of the
 * machine's configuration, readable and writable by its owner only; a file that others can read, write or replace is
 * refused. `WAFT_TOKEN` takes precedence.
 */
import { join } from "node:path";
import { currentUser, systemName } from "@waft/engine/internal/host/process";
import { fail } from "../base/diagnostic.ts";
import type { Files } from "../base/files.ts";
import { isObject, readJson } from "../base/json_read.ts";
import { requireOwnFile } from "../base/own_file.ts";
import type { MachinePaths } from "../base/paths.ts";
import { replaceWhole } from "../base/replace_file.ts";

const MAX_BYTES = 1 << 18;
/** The form of a token: the characters that an HTTP header accepts. */
const TOKEN = /^[!-~]{8,500}$/;

/** Whether this text is a token. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** The tokens that a machine keeps. */
export class Credentials {
  readonly #path: string;
  readonly #directory: string;
  readonly #files: Files;

  constructor(paths: MachinePaths, files: Files) {
    this.#directory = paths.config;
    this.#path = join(paths.config, "credentials.json");
    this.#files = files;
  }

  /** The token for a registry; undefined when none is stored. */
  async token(registry: string): Promise<string | undefined> {
    return (await this.#read())[registry];
  }

  /** Keeps a token. */
  async keep(registry: string, token: string): Promise<void> {
    await this.#write({ ...await this.#read(), [registry]: token });
  }

  /** Forgets a registry's token; false when none was kept. */
  async forget(registry: string): Promise<boolean> {
    const { [registry]: token, ...others } = await this.#read();
    if (token === undefined) return false;
    await this.#write(others);
    return true;
  }

  async #read(): Promise<{ readonly [registry: string]: string }> {
    const bytes = await this.#files.read(this.#path, MAX_BYTES);
    if (bytes === undefined) return {};
    const status = await this.#files.status(this.#path);
    if (
      systemName() !== "win32" && status !== undefined && (status.uid !== currentUser() || (status.mode & 0o077) !== 0)
    ) {
      throw fail("auth.unsafe", "others can read or write the file with your tokens", {
        file: this.#path,
        help: "run `chmod 600` on it, and replace its tokens if others may have read them",
      });
    }
    requireOwnFile(this.#path);
    const reading = readJson(bytes, { file: this.#path, codes: "auth", maxBytes: MAX_BYTES });
    const value = reading.ok ? reading.document.value : undefined;
    const tokens = isObject(value) && isObject(value.tokens) ? value.tokens : undefined;
    if (tokens === undefined) throw fail("auth.file", "the file with tokens cannot be read", { file: this.#path });
    return Object.fromEntries(
      Object.entries(tokens).filter((pair): pair is [string, string] =>
        typeof pair[1] === "string" && isToken(pair[1])
      ),
    );
  }

  async #write(tokens: { readonly [registry: string]: string }): Promise<void> {
    await this.#files.makeDirectory(this.#directory, 0o700);
    const text = `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`;
    await replaceWhole(this.#files, this.#path, new TextEncoder().encode(text), 0o600);
  }
}
