/**
 * Issuers of identity tokens (OpenID Connect): the rows that the registry and the command share.
 *
 * A row says by which claims an issuer identifies who runs a workflow: one of them at least must be demanded, because
 * workflows of any repository can have the others (a branch, an event, an audience).
 */

/** An issuer. */
interface OidcIssuer {
  /** Its name for `--issuer`. */
  readonly name: string;
  readonly url: string;
  readonly identifying: readonly string[];
}

/** The issuers that a registry accepts unless its operator names others. */
export const OIDC_ISSUERS: readonly OidcIssuer[] = [
  {
    name: "github",
    url: "https://token.actions.githubusercontent.com",
    identifying: ["sub", "repository", "repository_id", "job_workflow_ref", "workflow_ref"],
  },
  {
    name: "gitlab",
    url: "https://gitlab.com",
    identifying: ["sub", "project_path", "project_id", "ci_config_ref_uri"],
  },
];

/** The claims by which an issuer identifies a workflow: the subject, for those without a row. */
export function identifyingClaims(issuer: string): readonly string[] {
  return OIDC_ISSUERS.find(({ url }) => url === issuer)?.identifying ?? ["sub"];
}

/** Whether an address is encrypted, or on the loopback interface. */
export function isSafeAddress(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const isLoopback = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  return username === "" && password === "" && (protocol === "https:" || (protocol === "http:" && isLoopback));
}
