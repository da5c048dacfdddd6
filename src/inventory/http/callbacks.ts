import type { IncomingMessage, RequestListener } from 'node:http';
import { callbackPath } from '../../api/inventory/contract/request.ts';
import { describe } from '../../kit/errors.ts';
import { collectBody } from '../../kit/request-body.ts';
import { parseJson } from '../../kit/safe-json.ts';
import type { Log } from '../../observe/log.ts';
import { readRunId } from '../key.ts';
import { readComponentAccount } from '../policy/run-authorization.ts';
import type { ReportSink, TokenReader } from '../ports.ts';
import { bearerToken, sendJson } from './json-server.ts';

interface CallbacksDeps {
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
/** Tokens that are looked at at a time, by asking the API server, and reports that are taken at a time. */
const mostAtATime = 256;

const refusal = (status: number, code: string, message: string): Said => ({ status, body: { code, message } });
const busy = refusal(503, 'Busy', 'too many reports at a time; report again');

/** Does so much at a time; undefined for what it does not begin. */
type Limit = <T>(work: () => Promise<T>) => Promise<T> | undefined;

function atMost(most: number): Limit {
  let underWay = 0;
  return (work) => {
    if (underWay >= most) return undefined;
    underWay += 1;
    return work().finally(() => {
      underWay -= 1;
    });
  };
}

/** Answers `POST /v1/runs/<run>`: what runs that go on report. Whoever asks has to show the token of that run before its words are read. */
export function callbackListener(deps: CallbacksDeps): RequestListener {
  // Apart, so that whoever shows bad tokens takes no room from reports that are being taken.
  const limits = { asking: atMost(mostAtATime), taking: atMost(mostAtATime) };
  return (request, response) => {
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    answer(deps, limits, request, abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted) deps.log.warn('report not taken', { error: describe(error) });
        return refusal(503, 'Unavailable', 'report again');
      })
      .then(({ status, body }) => sendJson(request, response, status, body))
      .catch(() => undefined);
  };
}

async function answer(
  { reports, tokens, namespaceOf, leads }: CallbacksDeps,
  { asking, taking }: { readonly asking: Limit; readonly taking: Limit },
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<Said> {
  const { method, url = '' } = request;
  const path = url.split('?')[0] ?? '';
  const run = path.startsWith(callbackPath) ? readRunId(path.slice(callbackPath.length)) : undefined;
  if (!run) return refusal(404, 'NotFound', `here is POST ${callbackPath}<run>`);
  if (method !== 'POST') return refusal(405, 'MethodNotAllowed', 'reports are posted');
  if (!leads()) return refusal(503, 'NotLeading', 'another replica leads, or none does yet; report again');
  const token = bearerToken(request);
  const namespace = namespaceOf(run.entryUid);
  const unauthorized = refusal(401, 'Unauthorized', 'needs the token of the run, as Authorization: Bearer');
  // Whoever knows no entry does not make us ask the API server.
  if (token === undefined || namespace === undefined) return unauthorized;
  const asked = asking(() => tokens.read(token, signal));
  if (!asked) return busy;
  const who = await asked;
  if (!who) return unauthorized;
  const account = readComponentAccount(who.account);
  const isItsAccount = account?.entryUid === run.entryUid && account.component === run.component;
  // In any other namespace somebody else may make an account of this name.
  if (!isItsAccount || account.namespace !== namespace) {
    return refusal(403, 'ForeignCredential', 'only the token of the run itself may report for it');
  }
  return (await taking(() => take(reports, run, who.credentialId, request))) ?? busy;
}

async function take(
  reports: ReportSink,
  run: Parameters<ReportSink['report']>[0],
  credentialId: string,
  request: IncomingMessage,
): Promise<Said> {
  const bytes = await collectBody(request, { maxBytes: maxReportBytes });
  if (!bytes) return refusal(413, 'TooLarge', `a report may have ${maxReportBytes} bytes`);
  let body: unknown;
  try {
    body = parseJson(bytes);
  } catch (error) {
    return refusal(400, 'InvalidReport', describe(error));
  }
  const said = await reports.report(run, credentialId, body);
  return said.status === 200
    ? { status: 200, body: said.extension ?? {} }
    : refusal(said.status, said.code, said.message);
}
