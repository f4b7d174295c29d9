/**
 * Settings of a registry, with their defaults.
 */
import { ARCHIVE_LIMITS } from "../project/packages/archive.ts";
import { OIDC_ISSUERS } from "../project/packages/oidc_issuers.ts";
import { BASE_URL } from "../project/base/constants.ts";

/** Requests for each minute and address, by kind of request. */
export interface RateLimits {
  readonly read: number;
  readonly search: number;
  readonly installs: number;
  readonly write: number;
  /** Requests with a token that does not work. */
  readonly refused: number;
}

/** All settings. */
export interface Settings {
  /** Address under which the site is seen from outside, without a slash at the end. */
  readonly baseUrl: string;
  readonly rates: RateLimits;
  readonly publishPerHour: number;
  readonly publishPerDay: number;
  readonly jsonBytes: number;
  readonly archiveBytes: number;
  readonly readmeBytes: number;
  /** HTML of one rendered README. */
  readonly readmeHtmlBytes: number;
  /** The time that a body may take to arrive. */
  readonly bodyTimeoutMs: number;
  /** Limits of checking archives: time and memory of one, processes, and waiting tasks. */
  readonly checkTimeoutMs: number;
  readonly checkMemoryMiB: number;
  readonly checkProcesses: number;
  readonly checkQueue: number;
  /** Default lifetime of a token in days. */
  readonly tokenDays: number;
  /** Issuers of identity tokens (OpenID Connect) that may vouch for publishers. */
  readonly oidcIssuers: readonly string[];
  /** Trust the last address of X-Forwarded-For: set it only behind one's own proxy. */
  readonly trustProxy: boolean;
  /** Address of the source repository, for links to it and to the source of pages; absent: no such links. */
  readonly repositoryUrl?: string;
  /** Folder with waft's own releases, as `deno task release` writes it; absent: none are served. */
  readonly releases?: string;
}

/** The defaults. */
export const DEFAULT_SETTINGS: Settings = {
  baseUrl: BASE_URL,
  rates: { read: 600, search: 60, installs: 30, write: 60, refused: 30 },
  publishPerHour: 20,
  publishPerDay: 100,
  jsonBytes: 256 << 10,
  archiveBytes: ARCHIVE_LIMITS.packedBytes,
  readmeBytes: 512 << 10,
  readmeHtmlBytes: 1 << 20,
  bodyTimeoutMs: 60_000,
  checkTimeoutMs: 20_000,
  checkMemoryMiB: 512,
  checkProcesses: 1,
  checkQueue: 64,
  tokenDays: 90,
  oidcIssuers: OIDC_ISSUERS.map(({ url }) => url),
  trustProxy: false,
};
