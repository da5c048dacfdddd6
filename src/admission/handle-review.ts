import { type AuditRecord, decidingGroupsFirst, type EntrySubresource, entrySubresources } from '../audit/record.ts';
import { CodedError, describe, quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { withDeadline } from '../kit/promises.ts';
import { decodeReview, encodeAnswer, type Review } from './codec.ts';
import { answerOf, type Decision, type Handler, type Refusal } from './decision.ts';
import type { ReviewPorts } from './ports.ts';
import { excessOf, withinLimits } from './review-limits.ts';
import type { Route } from './routes.ts';

/**
 * One review from its parsed body to the AdmissionReview that answers it: decide, write the audit line, answer; in this order.
 * Rejects with CodedError `InvalidReview` when there is nothing that could be answered; everything else becomes an answer.
 */
export async function handleReview(
  route: Route,
  handler: Handler,
  body: unknown,
  timeoutMs: number,
  ports: ReviewPorts,
): Promise<unknown> {
  const decoded = decodeReview(body);
  expectRoute(route, decoded);
  const excess = excessOf(decoded);
  // Nothing of it is logged, counted or written down: it is not known to be anybody's.
  if (excess && !route.onlyWatches) return encodeAnswer(decoded.uid, answerOf({ refusal: excess }));
  const review = excess ? withinLimits(decoded) : decoded;
  const start = ports.clock.monotonic();
  const decided = await decide(route, handler, review, timeoutMs, ports);
  const latencyMs = ports.clock.monotonic() - start;
  const decision = await recorded(route, review, decided, latencyMs, ports);
  const { refusal } = decision;
  const way = wayIn(review);
  ports.answered({
    webhook: route.name,
    operation: review.operation,
    allowed: refusal === undefined,
    code: refusal?.code ?? '',
    seconds: (ports.clock.monotonic() - start) / 1000,
    // Of a pod that is not there the namespace need not be, either.
    namespace: way && decision.objectUid === undefined ? '' : review.namespace,
    dryRun: review.dryRun,
    template: decision.details?.template ?? '',
    ...(way ? { entry: { way, interactive: decision.details?.interactive ?? false } } : {}),
  });
  return encodeAnswer(review.uid, answerOf(decision));
}

/** Whatever goes wrong refuses, except where the webhook only watches. */
async function decide(
  route: Route,
  handler: Handler,
  review: Review,
  timeoutMs: number,
  { clock, log }: ReviewPorts,
): Promise<Decision> {
  const aborter = new AbortController();
  try {
    // At once, so that what it costs is counted for who asks.
    const deciding = new Promise<Decision>((resolve) => resolve(handler.decide(review, aborter.signal)));
    return await withDeadline(clock, timeoutMs, deciding);
  } catch (error) {
    aborter.abort(error);
    log.error('webhook could not decide', {
      webhook: route.name,
      operation: review.operation,
      namespace: review.namespace,
      name: review.name,
      reviewUid: review.uid,
      error: describe(error),
    });
    return route.onlyWatches ? {} : { refusal: faultOf(error, timeoutMs) };
  }
}

function faultOf(error: unknown, timeoutMs: number): Refusal {
  if (error instanceof CodedError && error.code === 'DeadlineExceeded') {
    return { code: 'DeadlineExceeded', message: `no decision within ${timeoutMs} ms; try again`, status: 504 };
  }
  // The cause may quote what the caller is not allowed to see: it is in the log, under the review's uid.
  return { code: 'InternalError', message: 'the webhook could not decide; try again, or ask an operator', status: 500 };
}

/** Validating decisions are all recorded, mutating ones and those about size when they refuse. What opens access waits for its line, or is refused. */
async function recorded(
  route: Route,
  review: Review,
  decision: Decision,
  latencyMs: number,
  { journal, log }: ReviewPorts,
): Promise<Decision> {
  if (!decision.refusal && tellsRefusalsOnly(route)) return decision;
  try {
    await journal.append(recordOf(route, review, decision, latencyMs));
    return decision;
  } catch (error) {
    log.error('audit line lost', { webhook: route.name, reviewUid: review.uid, error: describe(error) });
    if (decision.refusal || !decision.opensAccess) return decision;
    const message = 'no access is granted while the audit journal cannot be written; try again later';
    return { refusal: { code: 'AuditUnavailable', message, status: 503 } };
  }
}

function recordOf(route: Route, review: Review, decision: Decision, latencyMs: number): AuditRecord {
  const { refusal, details, decidingGroups = [] } = decision;
  const { username, uid: userUid, groups } = review.user;
  const verdict = refusal ? 'denied' : route.onlyWatches ? 'observed' : 'allowed';
  const { resource } = route;
  const uid = decision.objectUid ?? uidOf(review);
  return {
    event: wayIn(review) ?? 'admission',
    verdict,
    who: { user: username, uid: userUid, groups: decidingGroupsFirst(groups, decidingGroups) },
    what: {
      operation: review.operation,
      apiVersion: resource.group === '' ? resource.version : `${resource.group}/${resource.version}`,
      kind: resource.kind,
      namespace: review.namespace,
      name: review.name,
      ...(uid === undefined ? {} : { uid }),
    },
    ...details,
    ...(refusal ? { code: refusal.code, message: refusal.message } : {}),
    latencyMs: Math.round(latencyMs * 1000) / 1000,
    dryRun: review.dryRun,
    reviewUid: review.uid,
  };
}

function uidOf({ object, oldObject }: Review): string | undefined {
  for (const candidate of [object, oldObject]) {
    const uid = own(own(candidate, 'metadata'), 'uid');
    if (typeof uid === 'string' && uid !== '') return uid;
  }
  return undefined;
}

const wayIn = ({ subResource }: Review): EntrySubresource | undefined =>
  entrySubresources.find((way) => way === subResource);

/** That nothing was wrong with a size says nothing, and every status passes by. */
const tellsRefusalsOnly = ({ type, recordsRefusalsOnly }: Route): boolean =>
  type === 'mutating' || recordsRefusalsOnly === true;

/** A configuration that sends other objects here would have them judged by the wrong rules. */
function expectRoute({ path, resource, subresources = [''], operations }: Route, review: Review): void {
  const { group, version, resource: plural } = review.resource;
  const found = `${review.operation} of ${quote([plural, group, version, review.subResource].join(' ').trim())}`;
  const right =
    group === resource.group &&
    version === resource.version &&
    plural === resource.plural &&
    subresources.includes(review.subResource) &&
    operations.includes(review.operation);
  if (right) return;
  const allowed = `${operations.join(', ')} of ${resource.plural}${subresources.map((name) => name && `/${name}`).join(', ')}`;
  throw new CodedError('InvalidReview', `${path} takes ${allowed}; found ${found}`);
}
