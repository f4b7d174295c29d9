/**
 * The place where a workflow gets its identity token. In: the environment. Out: the place, if there is one; nothing is
 * asked for here.
 */

/** Where a workflow gets its identity token. */
export type IdentitySource =
  | { readonly kind: "given"; readonly token: string }
  /** A service of the workflow's host, which makes one for an audience. */
  | { readonly kind: "service"; readonly url: string; readonly bearer: string };

/** The identity source of an environment: `WAFT_ID_TOKEN`, else the service of GitHub Actions. */
export function identitySource(env: { readonly [name: string]: string | undefined }): IdentitySource | undefined {
  const { WAFT_ID_TOKEN: token, ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = env;
  if (token !== undefined && token !== "") return { kind: "given", token };
  return url === undefined || url === "" || bearer === undefined || bearer === ""
    ? undefined
    : { kind: "service", url, bearer };
}
