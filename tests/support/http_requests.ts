/** Requests to a server of the loopback interface, and routes of such servers. */
import { Buffer } from "node:buffer";
import { request as httpRequest } from "node:http";
import { type HandlerOptions, RequestHandler } from "../../component/http/request_handler.ts";
import { RouteTable } from "../../component/http/routes.ts";

/** An answer with a body of text. */
interface Reply {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly body: string;
}

/** Makes a request; rejects if the answer is incomplete. */
export function ask(
  port: number,
  path: string,
  { method = "GET", body = "", headers = {} as Record<string, string> } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, path, method, headers, agent: false }, (message) => {
      const parts: Uint8Array[] = [];
      message.on("data", (part: Uint8Array) => parts.push(part));
      message.on("error", reject);
      message.on("end", () => {
        const { statusCode = 0, headers } = message;
        resolve({ status: statusCode, headers, body: Buffer.concat(parts).toString() });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** The routes of a server with one component. */
export function allRequests(options: HandlerOptions): RouteTable<RequestHandler> {
  return new RouteTable([{ path: "/", target: new RequestHandler(options) }]);
}
