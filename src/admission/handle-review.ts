import {
  type AuditRecord,
  type ConnectSubresource,
  connectSubresources,
  decidingGroupsFirst,
} from '../audit/record.ts';
import { CodedError, describe, quote } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import { withDeadline } from '../kit/promises.ts';
import { decodeReview, encodeAnswer, type Review } from './codec.ts';
import { answerOf, type Decision, type Denial, type Handler } from './decision.ts';
import type { ReviewPorts } from './ports.ts';
import { limitViolation, truncateToLimits } from './review-limits.ts';
import type { Route } from './routes.ts';

/** Which client sent a review, and when the server must answer. */
interface ReviewCall {
  readonly address: string;
  /** When the server must answer, milliseconds on the monotonic clock. */
  readonly deadlineMs: number;
  /** Time from the complete body to the deadline, milliseconds. */
  readonly limitMs: number;
}

/**
 * Answers one review: decodes the parsed body, decides, writes the audit line if the route has one for this decision, and resolves to the
 * AdmissionReview with the answer. If the review exceeds the limits (`limitViolation`), an observe-only webhook truncates it, and any other
 * webhook denies it without an audit line.
 * Rejects with CodedError `InvalidReview` if the body is not a review of this route. All other errors become answers.
 */
export async function handleReview(
  route: Route,
  handler: Handler,
  body: unknown,
  call: ReviewCall,
  ports: ReviewPorts,
): Promise<unknown> {
  const decoded = decodeReview(body);
  expectRoute(route, decoded);
  const excess = limitViolation(decoded);
  // Do not log, count, or audit this denial: a caller can send any number of such reviews, each with another name.
  if (excess && !route.observeOnly) return encodeAnswer(decoded.uid, answerOf({ denial: excess }));
  const review = excess ? truncateToLimits(decoded) : decoded;
  const start = ports.clock.monotonic();
  const decided = await decide(route, handler, review, call, ports);
  const latencyMs = ports.clock.monotonic() - start;
  const decision = await recordDecision(route, review, decided, latencyMs, ports);
  const { denial } = decision;
  const subresource = connectSubresourceOf(review);
  ports.recordOutcome({
    webhook: route.name,
    operation: review.operation,
    allowed: denial === undefined,
    code: denial?.code ?? '',
    seconds: (ports.clock.monotonic() - start) / 1000,
    // If the pod does not exist, its namespace may not exist either, so it must not become a label.
    namespace: subresource && decision.objectUid === undefined ? '' : review.namespace,
    dryRun: review.dryRun,
    template: decision.details?.template ?? '',
    ...(subresource ? { connect: { subresource, interactive: decision.details?.interactive ?? false } } : {}),
  });
  return encodeAnswer(review.uid, answerOf(decision));
}

/** Runs the handler, unless the review waited until its deadline. Any fault denies the request, unless the webhook is observe-only. */
async function decide(
  route: Route,
  handler: Handler,
  review: Review,
  { address, deadlineMs, limitMs }: ReviewCall,
  { clock, log }: ReviewPorts,
): Promise<Decision> {
  const aborter = new AbortController();
  try {
    const leftMs = deadlineMs - clock.monotonic();
    if (leftMs <= 0) throw new CodedError('DeadlineExceeded', `the review waited ${limitMs} ms for its turn`);
    // Calls the handler synchronously, so that the queue charges its work to the caller's address.
    const deciding = new Promise<Decision>((resolve) => resolve(handler.decide(review, aborter.signal, address)));
    return await withDeadline(clock, leftMs, deciding);
  } catch (error) {
    aborter.abort(error);
    log.error('webhook failed to decide', {
      webhook: route.name,
      operation: review.operation,
      namespace: review.namespace,
      name: review.name,
      reviewUid: review.uid,
      error: describe(error),
    });
    return route.observeOnly ? {} : { denial: denialOfFault(error, limitMs) };
  }
}

function denialOfFault(error: unknown, limitMs: number): Denial {
  if (error instanceof CodedError && error.code === 'DeadlineExceeded') {
    return { code: 'DeadlineExceeded', message: `no decision within ${limitMs} ms; try again`, status: 504 };
  }
  // The cause may quote data that the caller must not see. The log has it, under the UID of the review.
  const message = 'the webhook failed to decide; try again, or ask an administrator to read the server log';
  return { code: 'InternalError', message, status: 500 };
}

/**
 * Writes the audit line of a decision. A route that audits only denials writes none for other decisions. Resolves to the decision or, if
 * the write fails and access could open because of the decision, to a denial (`AuditUnavailable`).
 */
async function recordDecision(
  route: Route,
  review: Review,
  decision: Decision,
  latencyMs: number,
  { journal, log }: ReviewPorts,
): Promise<Decision> {
  if (!decision.denial && auditsDenialsOnly(route)) return decision;
  try {
    await journal.append(recordOf(route, review, decision, latencyMs));
    return decision;
  } catch (error) {
    log.error('audit line lost; the server opens no access while it cannot write its audit journal', {
      webhook: route.name,
      reviewUid: review.uid,
      error: describe(error),
    });
    if (decision.denial || !decision.opensAccess) return decision;
    const message = 'the server cannot write its audit journal; no access opens without an audit line; try again later';
    return { denial: { code: 'AuditUnavailable', message, status: 503 } };
  }
}

function recordOf(route: Route, review: Review, decision: Decision, latencyMs: number): AuditRecord {
  const { denial, details, decidingGroups = [] } = decision;
  const { username, uid: userUid, groups } = review.user;
  const verdict = denial ? 'denied' : route.observeOnly ? 'observed' : 'allowed';
  const { resource } = route;
  const uid = decision.objectUid ?? uidOf(review);
  return {
    event: connectSubresourceOf(review) ?? 'admission',
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
    ...(denial ? { code: denial.code, message: denial.message } : {}),
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

const connectSubresourceOf = ({ subResource }: Review): ConnectSubresource | undefined =>
  connectSubresources.find((subresource) => subresource === subResource);

const auditsDenialsOnly = ({ type, auditsDenialsOnly }: Route): boolean =>
  type === 'mutating' || auditsDenialsOnly === true;

/** Rejects reviews that a wrong webhook configuration sends here: this handler would apply the wrong rules to them. */
function expectRoute({ path, resource, subresources = [''], operations }: Route, review: Review): void {
  const { group, version, resource: plural } = review.resource;
  const found = `${review.operation} of ${quote([plural, group, version, review.subResource].join(' ').trim())}`;
  const isServed =
    group === resource.group &&
    version === resource.version &&
    plural === resource.plural &&
    subresources.includes(review.subResource) &&
    operations.includes(review.operation);
  if (isServed) return;
  const names = subresources.map((name) => (name === '' ? resource.plural : `${resource.plural}/${name}`));
  const allowed = `${operations.join(', ')} of ${names.join(', ')}`;
  throw new CodedError('InvalidReview', `found ${found}; ${path} allows ${allowed}; correct the webhook configuration`);
}
