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

interface ReviewCall {
  readonly address: string;
  /** Milliseconds on the monotonic clock. */
  readonly deadlineMs: number;
  /** Milliseconds from the complete body to the deadline. */
  readonly limitMs: number;
}

/**
 * One review: decode → limits → handler → audit line → answer. Beyond the limits, an observe-only
 * webhook truncates it, and others deny it without an audit line. Rejects with CodedError
 * `InvalidReview` for a wrong body or route; all other errors are answers.
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
  // Neither log, count, nor audit it: a caller can send any number, each with another name.
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
    // If the pod does not exist, neither may its namespace, so it must not become a label.
    namespace: subresource && decision.objectUid === undefined ? '' : review.namespace,
    dryRun: review.dryRun,
    template: decision.details?.template ?? '',
    ...(subresource ? { connect: { subresource, interactive: decision.details?.interactive ?? false } } : {}),
  });
  return encodeAnswer(review.uid, answerOf(decision));
}

/** Any fault denies the request, unless the webhook is observe-only. */
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
    // Synchronously, so that the queue charges the work to the caller's address.
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
  // The cause may quote data that the caller must not see. The log has it.
  const message = 'the webhook failed to decide; try again, or ask an administrator to read the server log';
  return { code: 'InternalError', message, status: 500 };
}

/** If the write fails and access could open, the decision becomes `AuditUnavailable`. */
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

/** A wrong webhook configuration sent it here: the handler would apply the wrong rules. */
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
