import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { callbackPath } from '../../api/inventory/contract/request.ts';
import { describe } from '../../kit/errors.ts';
import { parseJson } from '../../kit/safe-json.ts';
import type { Log } from '../../observe/log.ts';
import { readRunId } from '../key.ts';
import { readComponentAccount } from '../policy/component-account.ts';
import type { TokenReader } from '../ports/entry-access.ts';
import type { ReportSink } from '../ports/report-sink.ts';

export interface CallbacksDeps {
  readonly reports: ReportSink;
  readonly tokens: TokenReader;
  /** Of an entry; undefined while it is not known. */
  readonly namespaceOf: (entryUid: string) => string | undefined;
  /** Whether this replica takes reports. */
  readonly leads: () => boolean;
  readonly log: Log;
}

interface Said {
  readonly status: number;
  readonly body: object;
}

/** Largest report that is read, bytes. */
const maxReportBytes = 131_072;
/** Reports at a time; each asks the API server once. */
const mostAtATime = 256;

const refusal = (status: number, code: string, message: string): Said => ({ status, body: { code, message } });

/** Answers `POST /v1/runs/<run>`: what runs that go on report. Whoever asks has to show the token of that run before its words are read. */
export function callbackListener(deps: CallbacksDeps): RequestListener {
  let underWay = 0;
  return (request, response) => {
    if (underWay >= mostAtATime) {
      send(request, response, refusal(503, 'Busy', 'too many reports at a time; report again'));
      return;
    }
    underWay += 1;
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    answer(deps, request, abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted) deps.log.warn('report not taken', { error: describe(error) });
        return refusal(503, 'Unavailable', 'report again');
      })
      .then((said) => send(request, response, said))
      .finally(() => {
        underWay -= 1;
      })
      .catch(() => undefined);
  };
}

async function answer(
  { reports, tokens, namespaceOf, leads }: CallbacksDeps,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Said> {
  const { method, url = '', headers } = request;
  const path = url.split('?')[0] ?? '';
  const run = path.startsWith(callbackPath) ? readRunId(path.slice(callbackPath.length)) : undefined;
  if (!run) return refusal(404, 'NotFound', `here is POST ${callbackPath}<run>`);
  if (method !== 'POST') return refusal(405, 'MethodNotAllowed', 'reports are posted');
  if (!leads()) return refusal(503, 'NotLeading', 'another replica leads, or none does yet; report again');
  const [, token] = /^Bearer ([\x21-\x7e]{1,16384})$/i.exec(headers.authorization ?? '') ?? [];
  const who = token === undefined ? undefined : await tokens.read(token, signal);
  if (!who) return refusal(401, 'Unauthorized', 'needs the token of the run, as Authorization: Bearer');
  const account = readComponentAccount(who.account);
  const isItsAccount = account?.entryUid === run.entryUid && account.component === run.component;
  // In any other namespace somebody else may make an account of this name.
  if (!isItsAccount || account.namespace !== (namespaceOf(run.entryUid) ?? account.namespace)) {
    return refusal(403, 'ForeignCredential', 'only the token of the run itself may report for it');
  }
  const bytes = await read(request);
  if (!bytes) return refusal(413, 'TooLarge', `a report may have ${maxReportBytes} bytes`);
  let body: unknown;
  try {
    body = parseJson(bytes);
  } catch (error) {
    return refusal(400, 'InvalidReport', describe(error));
  }
  const said = await reports.report(run, who.credentialId, body);
  return said.status === 200 ? { status: 200, body: said.lease ?? {} } : refusal(said.status, said.code, said.message);
}

/** Undefined when it is too large. */
async function read(request: IncomingMessage): Promise<Buffer | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > maxReportBytes) return undefined;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxReportBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function send(request: IncomingMessage, response: ServerResponse, { status, body }: Said): void {
  if (response.destroyed || response.headersSent) return;
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    // What was not read of the request would be taken for the next one.
    ...(request.complete ? {} : { connection: 'close' }),
    ...(status === 503 ? { 'retry-after': '1' } : {}),
  });
  response.end(text);
}
