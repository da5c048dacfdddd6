import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObjectName } from '../../access/policy/names.ts';
import { collectBody } from '../../kit/request-body.ts';
import type { ClusterConnection } from '../cluster-connection.ts';

/** One authorized call of the page. */
export interface Call {
  readonly method: string;
  readonly query: URLSearchParams;
  /** That of the console. All calls share it; `inNamespace` narrows it. */
  readonly connection: ClusterConnection;
  /** Aborts when the page has closed the call, and when the console ends. */
  readonly signal: AbortSignal;
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body. Rejects with Refusal 413. */
  read(maxBytes: number): Promise<Buffer>;
  /** The whole answer. */
  json(value: unknown): Promise<void>;
  /** Of a stream, like `write`. */
  line(value: unknown): Promise<void>;
  /** Resolves once the page takes more; rejects if it has closed the call. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Streams end when it resolves. An error becomes a `Failure`. */
export type Handler = (call: Call) => Promise<void>;

/** An answer with a status from 400. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A field of a query that names an object. @throws Refusal 400 */
export function nameIn(query: URLSearchParams, field: string): string | undefined {
  const name = query.get(field) ?? undefined;
  if (name === undefined || isObjectName(name)) return name;
  throw new Refusal(400, `${field} is not a name`);
}

export function callOf(
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
  { connection, signal }: Pick<Call, 'connection' | 'signal'>,
): Call {
  const write = async (bytes: string | Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    if (!response.write(bytes)) await once(response, 'drain', { signal });
  };
  return {
    method: request.method ?? '',
    query,
    connection,
    signal,
    body: request,
    async read(maxBytes) {
      const body = await collectBody(request, { maxBytes });
      if (body) return body;
      throw new Refusal(413, `the body is too large; the console takes at most ${maxBytes} bytes`);
    },
    async json(value) {
      response.setHeader('content-type', 'application/json');
      await write(jsonText(value));
    },
    line: (value) => write(`${jsonText(value)}\n`),
    write,
  };
}

/**
 * Without line ends. In texts, other control and invisible characters become `?`: they change how a
 * browser shows a text, and most texts are from the cluster.
 */
export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(/\\(?:["\\nt]|u[0-9a-f]{4}|[bfr])|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (found) =>
    /^\\["\\nt]$/.test(found) ? found : '?',
  );
