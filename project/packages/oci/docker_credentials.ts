/**
 * Credentials for OCI registries, as `docker login` and its kin store them: `config.json` in `DOCKER_CONFIG` or in
 * `~/.docker`. In: the name of a registry. Out: a user name with a password, or a token. Invariant: a registry gets
 * only the credentials that are stored for its name.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Buffer } from "node:buffer";
import { environmentVariable } from "@waft/engine/internal/host/process";
import { joinPaths } from "../../base/system_path.ts";
import { thisMachine } from "../../base/paths.ts";

/** Credentials of a registry. */
export type Credentials =
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  /** A token that is exchanged for others at the registry's authorization server. */
  | { readonly kind: "identity"; readonly token: string };

interface DockerConfig {
  readonly auths?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly credHelpers?: Readonly<Record<string, unknown>>;
  readonly credsStore?: unknown;
}

const DOCKER_HUB_KEY = "https://index.docker.io/v1/";
const HELPER_NAME = /^[\w.-]{1,64}$/;
const HELPER_TIMEOUT_MS = 30_000;
/** The user name that a helper gives to an identity token. */
const TOKEN_USER = "<token>";

/** The credentials for the registry `host`; undefined without any. Throws an Error for a file that cannot be used. */
export function dockerCredentials(host: string): Credentials | undefined {
  const config = readConfig();
  const keys = [host, `https://${host}`, `https://${host}/`, ...(host === "docker.io" ? [DOCKER_HUB_KEY] : [])];
  const helper = keys.map((key) => own(config.credHelpers, key)).find((name) => name !== undefined) ??
    config.credsStore;
  if (typeof helper === "string" && helper !== "") {
    const key = host === "docker.io" ? DOCKER_HUB_KEY : host;
    const found = askHelper(helper, key);
    if (found !== undefined) return found;
  }
  const entry = keys.map((key) => own(config.auths, key)).find((found) => found !== undefined);
  return entry === undefined ? undefined : credentialsOf(entry);
}

function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

function readConfig(): DockerConfig {
  const folder = environmentVariable("DOCKER_CONFIG") ?? joinPaths(thisMachine().home, ".docker");
  const path = joinPaths(folder, "config.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return {};
  }
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    throw new Error(`${path} is not JSON; it has the credentials of registries`);
  }
  return typeof config === "object" && config !== null ? config : {};
}

function credentialsOf(entry: Readonly<Record<string, unknown>>): Credentials | undefined {
  const { auth, username, password, identitytoken } = entry;
  if (typeof identitytoken === "string" && identitytoken !== "") return { kind: "identity", token: identitytoken };
  if (typeof username === "string" && typeof password === "string") {
    return { kind: "password", user: username, password };
  }
  if (typeof auth !== "string") return undefined;
  const text = Buffer.from(auth, "base64").toString();
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { kind: "password", user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Asks the program `docker-credential-NAME`. */
function askHelper(name: string, key: string): Credentials | undefined {
  if (!HELPER_NAME.test(name)) throw new Error(`"${name}" is not the name of a credential helper`);
  const program = `docker-credential-${name}`;
  const { status, stdout, error } = spawnSync(program, ["get"], {
    input: key,
    encoding: "utf8",
    timeout: HELPER_TIMEOUT_MS,
    stdio: ["pipe", "pipe", "ignore"],
  });
  if (error !== undefined) throw new Error(`${program}: ${error.message}`);
  // A helper ends with a failure if it has nothing for the registry.
  if (status !== 0) return undefined;
  try {
    const { Username: user, Secret: secret } = JSON.parse(stdout) as { Username?: unknown; Secret?: unknown };
    if (typeof user !== "string" || typeof secret !== "string") return undefined;
    return user === TOKEN_USER ? { kind: "identity", token: secret } : { kind: "password", user, password: secret };
  } catch {
    throw new Error(`${program} does not answer with JSON`);
  }
}
