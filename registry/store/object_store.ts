/**
 * Archives in object storage, through the API of S3. In: the address of a bucket, credentials of the environment. Out:
 * archives by digest. Invariants: an archive is stored before the release that names it, so that no release lacks its
 * bytes; the storage compares the digest of these bytes, and a whole archive that it returns is compared again;
 * credentials go over encrypted connections, or to the loopback interface.
 */
import { AwsClient } from "aws4fetch";
import { digestBytes } from "../../project/base/integrity.ts";
import { StoreUnavailable } from "./database.ts";

/** Archives outside of the database. */
export interface ObjectStore {
  /** Stores an archive. Throws StoreUnavailable if that is not certain. */
  put(digest: string, bytes: Uint8Array): Promise<void>;
  /** Part of an archive of `size` bytes, or all of it. Throws StoreUnavailable. */
  read(digest: string, start: number, length: number, size: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** Variables of the environment by name. */
type Variables = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
const TIMEOUT_MS = 20_000;
/** Attempts after failures that may pass. */
const RETRIES = 3;
const REGION = "us-east-1";
/** The variable with the address of the bucket. */
const ADDRESS = "WAFT_REGISTRY_ARCHIVES";

/** The storage that the variables name; undefined if they name none. Throws an Error for those that are wrong. */
export function objectStore(variables: Variables): ObjectStore | undefined {
  const address = variables[ADDRESS];
  if (address === undefined || address === "") return undefined;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (url === undefined || !isSafe || url.search !== "" || url.hash !== "" || url.username !== "") {
    throw new Error(`${ADDRESS} is the address of a bucket, such as https://s3.example.com/archives, not "${address}"`);
  }
  const [accessKeyId, secretAccessKey] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map((name) => {
    const value = variables[name];
    if (value === undefined || value === "") throw new Error(`${ADDRESS} needs the credentials of the bucket: ${name}`);
    return value;
  });
  const { AWS_SESSION_TOKEN: sessionToken, AWS_REGION: region = REGION } = variables;
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    region,
    service: "s3",
    retries: RETRIES,
  });
  return new S3Store(client, url.href.replace(/\/+$/, ""));
}

class S3Store implements ObjectStore {
  readonly #client: AwsClient;
  readonly #bucket: string;

  constructor(client: AwsClient, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async put(digest: string, bytes: Uint8Array): Promise<void> {
    const response = await this.#send(digest, {
      method: "PUT",
      body: new Uint8Array(bytes),
      headers: { "x-amz-content-sha256": digest.slice("sha256:".length), "content-type": "application/gzip" },
    });
    await response.body?.cancel();
    if (!response.ok) throw new StoreUnavailable(`the object storage answers with status ${response.status}`);
  }

  async read(digest: string, start: number, length: number, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const isWhole = start === 0 && length === size;
    const response = await this.#send(digest, {
      headers: isWhole ? {} : { range: `bytes=${start}-${start + length - 1}` },
    });
    if (response.status !== (isWhole ? 200 : 206)) {
      await response.body?.cancel();
      throw new StoreUnavailable(`the object storage answers with status ${response.status} for ${digest}`);
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length !== length || (isWhole && digestBytes(bytes) !== digest)) {
      throw new StoreUnavailable(`the object storage returns other bytes for ${digest}`);
    }
    return bytes;
  }

  async #send(digest: string, init: RequestInit): Promise<Response> {
    const url = `${this.#bucket}/${digest.replace(":", "/")}`;
    try {
      return await this.#client.fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (error) {
      throw new StoreUnavailable(`the object storage cannot be reached: ${(error as Error).message}`);
    }
  }
}
