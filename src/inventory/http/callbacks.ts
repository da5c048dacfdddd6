import type { IncomingMessage, RequestListener } from 'node:http';
import { callbackPath } from '../../api/inventory/contract/request.ts';
import type { ReportCode } from '../../api/inventory/http-codes.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { collectBody, parseBody } from '../../kit/request-body.ts';
import type { Log } from '../../observe/log.ts';
import { parseRunId, runId } from '../key.ts';
import { parseComponentAccount } from '../policy/run-authorization.ts';
import type { ReportSink, TokenReader } from '../ports.ts';
import { bearerToken, sendJson } from './messages.ts';

interface CallbacksDeps {
  readonly reports: ReportSink;
  readonly tokens: TokenReader;
  readonly namespaceOf: (entryUid: string) => string | undefined;
  readonly leads: () => boolean;
  readonly log: Log;
  readonly clock: Pick<Clock, 'monotonic'>;
}

interface HttpAnswer {
  readonly status: number;
  readonly body: object;
}

type ReportedRun = Parameters<ReportSink['report']>[0];

const maxReportBytes = 131_072;
/** Of TokenReviews, and of reports with a valid token. Further reports get 503. */
const maxConcurrent = 256;

/** Between two lines about refused reports. */
const refusalIntervalMs = 60_000;

const errorAnswer = (status: number, code: ReportCode, message: string): HttpAnswer => ({
  status,
  body: { code, message },
});
const busy = errorAnswer(503, 'Unavailable', `${maxConcurrent} reports are active, which is the limit; report again`);

/** Undefined, without starting `work`, at the maximum. */
type Limit = <T>(work: () => Promise<T>) => Promise<T> | undefined;

function limitTo(max: number): Limit {
  let active = 0;
  return (work) => {
    if (active >= max) return undefined;
    active += 1;
    return work().finally(() => {
      active -= 1;
    });
  };
}

/**
 * Answers `POST /v1/runs/<run>`, the reports of asynchronous runs. Authenticates before it reads
 * the body. 503: not the leader (`NotLeading`), or too many reports, a failed
 * TokenReview, or a failed report (`Unavailable`).
 */
export function callbackListener(deps: CallbacksDeps): RequestListener {
  // Separate, so that slow reports and TokenReviews do not block each other.
  const limits = { reviewing: limitTo(maxConcurrent), handling: limitTo(maxConcurrent) };
  const logRefusal = refusalLog(deps);
  return (request, response) => {
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    answer(deps, limits, logRefusal, request, abort.signal)
      .catch((error: unknown) => {
        if (!abort.signal.aborted)
          deps.log.warn('the server failed to handle a report of a component; it answers 503', {
            error: describe(error),
          });
        return errorAnswer(503, 'Unavailable', 'the server could not handle the report; report again');
      })
      .then(({ status, body }) => sendJson(request, response, status, body))
      .catch(() => undefined);
  };
}

/**
 * Logs reports answered 401 or 403, which nothing else on the server shows. Anyone may send them,
 * so it limits the lines, and counts what it omits.
 */
function refusalLog({ log, clock }: Pick<CallbacksDeps, 'log' | 'clock'>): (run: ReportedRun, code: string) => void {
  let nextAt = Number.NEGATIVE_INFINITY;
  let omitted = 0;
  return (run, code) => {
    const now = clock.monotonic();
    if (now < nextAt) {
      omitted += 1;
      return;
    }
    const message = 'a report was answered 401 or 403; its sender, which need not be the component, named this run';
    log.warn(message, { run: runId(run, run.seq), code, omitted });
    nextAt = now + refusalIntervalMs;
    omitted = 0;
  };
}

interface Limits {
  readonly reviewing: Limit;
  readonly handling: Limit;
}

async function answer(
  deps: CallbacksDeps,
  limits: Limits,
  logRefusal: ReturnType<typeof refusalLog>,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const { method, url = '' } = request;
  const path = url.split('?')[0] ?? '';
  const run = path.startsWith(callbackPath) ? parseRunId(path.slice(callbackPath.length)) : undefined;
  if (!run)
    return errorAnswer(
      404,
      'NotFound',
      `unknown path; the server takes reports of components here, at ${callbackPath}<run>; use the URL in the field callback of the call unchanged`,
    );
  if (method !== 'POST')
    return errorAnswer(405, 'MethodNotAllowed', 'the method is not POST, the only one allowed; use POST');
  if (!deps.leads())
    return errorAnswer(
      503,
      'NotLeading',
      'this replica is not the leader; only the leader accepts reports; report again',
    );
  const found = await answerReport(deps, limits, run, request, signal);
  const isRefused = found.status === 401 || found.status === 403;
  // A caller that does not know the UID of an entry causes no line.
  if (isRefused && 'code' in found.body && deps.namespaceOf(run.entryUid) !== undefined)
    logRefusal(run, String(found.body.code));
  return found;
}

async function answerReport(
  { reports, tokens, namespaceOf }: CallbacksDeps,
  { reviewing, handling }: Limits,
  run: ReportedRun,
  request: IncomingMessage,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const token = bearerToken(request);
  const namespace = namespaceOf(run.entryUid);
  const unauthorized = errorAnswer(
    401,
    'Unauthorized',
    'the token is missing, invalid, or expired, or the entry is gone; send the latest auth.token that the call or an answer to a heartbeat contained, as Authorization: Bearer TOKEN; if you did, stop working on the run',
  );
  // A caller that does not know the UID of an entry causes no TokenReview.
  if (token === undefined || namespace === undefined) return unauthorized;
  const review = reviewing(() => tokens.read(token, signal));
  if (!review) return busy;
  const identity = await review;
  if (!identity) return unauthorized;
  const account = parseComponentAccount(identity.account);
  const isAccountOfRun = account?.entryUid === run.entryUid && account.component === run.component;
  // Users of another namespace may create an account with this name there.
  if (!isAccountOfRun || account.namespace !== namespace) {
    const message = `the token is of the account ${identity.account}, not of the reported run; send the latest auth.token that the call of this run or an answer to its heartbeats contained`;
    return errorAnswer(403, 'ForeignCredential', message);
  }
  return (await handling(() => handleReport(reports, run, identity.credentialId, request))) ?? busy;
}

async function handleReport(
  reports: ReportSink,
  run: ReportedRun,
  credentialId: string,
  request: IncomingMessage,
): Promise<HttpAnswer> {
  const bytes = await collectBody(request, { maxBytes: maxReportBytes });
  if (!bytes) {
    await reports.rejected(run, credentialId, 'TooLarge');
    return errorAnswer(
      413,
      'TooLarge',
      `the report is too large; at most ${maxReportBytes} bytes are allowed; report less, for example smaller outputs`,
    );
  }
  let body: unknown;
  try {
    body = parseBody(bytes);
  } catch (error) {
    await reports.rejected(run, credentialId, 'InvalidReport');
    return errorAnswer(400, 'InvalidReport', describe(error));
  }
  const answer = await reports.report(run, credentialId, body);
  return answer.status === 200
    ? { status: 200, body: answer.extension ?? answer.rejection ?? {} }
    : errorAnswer(answer.status, answer.code, answer.message);
}
