import type { ChainLink } from './chain.ts';

/**
 * As the API server authenticated them: the caller; for a grant or a revocation, the requester; for
 * a review or an abandonment, the person who used the emergency or abandoned the component.
 */
interface AuditSubject {
  /** Empty if the server acted on its own. */
  readonly user: string;
  readonly uid?: string;
  /** The first 32 are written; see `decidingGroupsFirst`. */
  readonly groups?: readonly string[];
}

interface AuditObject {
  /**
   * Webhook: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`. Controller: `GRANT`, `REVOKE`, `REVIEW`,
   * `ABANDON`, `VERIFY`. Gateway: `CONNECT` for a session and its recording, `GET` for a view,
   * `DELETE`.
   */
  readonly operation: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** Through which a user enters a Pod. */
export const connectSubresources = ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers'] as const;
export type ConnectSubresource = (typeof connectSubresources)[number];

/** It approved a grant or an extension, ended access, or reviewed an emergency. */
interface AuditVote {
  readonly uid: string;
  /** Absent if the vote no longer exists. */
  readonly voter?: string;
  readonly decision?: string;
  /** The longest duration that it approves. */
  readonly max?: string;
  readonly reason?: string;
  /** For whom a program claims to vote. */
  readonly onBehalfOf?: string;
}

/** One line. Nothing else of the objects is written, because they may contain secrets. */
export interface AuditRecord {
  /** With its verdicts in docs/reference/audit-journal.md. */
  readonly event: 'admission' | 'grant' | 'revocation' | 'review' | 'policies' | 'session' | ConnectSubresource;
  readonly verdict:
    | 'allowed'
    | 'denied'
    | 'granted'
    | 'extended'
    | 'revoked'
    | 'reviewed'
    | 'unproven'
    | 'proven'
    | 'observed'
    | 'opened'
    | 'ended'
    | 'recorded'
    | 'unrecorded'
    | 'deleted'
    | 'viewed';
  readonly who: AuditSubject;
  readonly what: AuditObject;
  /** In the object's namespace. */
  readonly template?: string;
  readonly templateUid?: string;
  readonly templateGeneration?: number;
  /** As written; in the line of a granted extension, its `by`. */
  readonly duration?: string;
  /** The requested pod. */
  readonly target?: string;
  /** As written. */
  readonly startAt?: string;
  /** The request asks for emergency access. */
  readonly emergency?: boolean;
  /** Of a request, extension, vote, revocation, or abandonment, as the user wrote it. */
  readonly reason?: string;
  /** Those that approved, ended access, or reviewed an emergency. */
  readonly votes?: readonly AuditVote[];
  /** Its grant allowed this; without one, it owns the pod. For a vote: what the vote is about. */
  readonly request?: string;
  /** The pod that was opened or entered. */
  readonly pod?: string;
  readonly container?: string;
  /** The component that wrote, or that a user abandoned. */
  readonly component?: string;
  /** Its latest run: `<uid of the entry>.<component>.<number>`. */
  readonly run?: string;
  /** The user has a terminal with input. */
  readonly interactive?: boolean;
  /** Of the gateway: a random UUID. */
  readonly session?: string;
  /** `exec`, `attach`, or `portforward`. */
  readonly stream?: string;
  /** SHA-256 (hex) of the JSON list of its words, which may contain secrets. */
  readonly commandHash?: string;
  /** To the pod, and from it. */
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  /** Of the command of a session. */
  readonly exitCode?: number;
  /** Of a recording, from 1; if `complete`, how many it has. */
  readonly chunk?: number;
  /** Of the chunk; SHA-256 in hex. */
  readonly bytes?: number;
  readonly sha256?: string;
  /** True in the line after the last chunk. */
  readonly complete?: boolean;
  /** End of the grant, RFC 3339. */
  readonly expiresAt?: string;
  /** Of the reason, stable, such as `NotEligible`. */
  readonly code?: string;
  readonly message?: string;
  readonly latencyMs?: number;
  readonly dryRun?: boolean;
  /** `request.uid` of the AdmissionReview, which the server's log names if the webhook failed. */
  readonly reviewUid?: string;
}

interface JournalFields extends ChainLink {
  /** RFC 3339 with microseconds. */
  readonly time: string;
  readonly replica: string;
}

/** The list may be truncated, so those in `deciding` go first. */
export function decidingGroupsFirst(groups: readonly string[], deciding: readonly string[]): string[] {
  const decides = new Set(deciding);
  return [...groups.filter((group) => decides.has(group)), ...groups.filter((group) => !decides.has(group))];
}

/** Characters. */
const MAX_TEXT = 1024;
const MAX_GROUPS = 32;
const MAX_VOTES = 40;
/** In a list of votes. The line of the vote itself has up to 1,024. */
const MAX_VOTE_REASON = 256;

/**
 * Without hash and newline. Truncates texts at 1,024 characters, and escapes what would confuse a
 * terminal or a line reader.
 */
export function formatRecord(fields: JournalFields, record: AuditRecord): string {
  const { who, what } = record;
  const groups = who.groups ?? [];
  const line = JSON.stringify({
    chain: fields.chain,
    seq: fields.seq,
    lost: fields.lost || undefined,
    time: fields.time,
    replica: bounded(fields.replica),
    event: record.event,
    verdict: record.verdict,
    who: {
      user: bounded(who.user),
      uid: bounded(who.uid),
      groups: groups.slice(0, MAX_GROUPS).map(bounded),
      groupCount: groups.length > MAX_GROUPS ? groups.length : undefined,
    },
    what: {
      operation: bounded(what.operation),
      apiVersion: bounded(what.apiVersion),
      kind: bounded(what.kind),
      namespace: bounded(what.namespace),
      name: bounded(what.name),
      uid: bounded(what.uid),
    },
    template: bounded(record.template),
    templateUid: bounded(record.templateUid),
    templateGeneration: record.templateGeneration,
    duration: bounded(record.duration),
    target: bounded(record.target),
    startAt: bounded(record.startAt),
    emergency: record.emergency,
    reason: bounded(record.reason),
    votes: record.votes?.slice(0, MAX_VOTES).map(boundedVote),
    request: bounded(record.request),
    pod: bounded(record.pod),
    container: bounded(record.container),
    component: bounded(record.component),
    run: bounded(record.run),
    interactive: record.interactive,
    session: bounded(record.session),
    stream: bounded(record.stream),
    commandHash: bounded(record.commandHash),
    bytesIn: record.bytesIn,
    bytesOut: record.bytesOut,
    exitCode: record.exitCode,
    chunk: record.chunk,
    bytes: record.bytes,
    sha256: bounded(record.sha256),
    complete: record.complete,
    expiresAt: bounded(record.expiresAt),
    code: bounded(record.code),
    message: bounded(record.message),
    latencyMs: record.latencyMs,
    dryRun: record.dryRun,
    reviewUid: bounded(record.reviewUid),
    prev: fields.prev,
  });
  return line.replace(UNPRINTABLE, escapeUnit);
}

/** JSON does not escape them: DEL, C1, separators, bidirectional marks, byte order mark. */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

const boundedVote = ({ uid, voter, decision, max, reason, onBehalfOf }: AuditVote) => ({
  uid: bounded(uid),
  voter: bounded(voter),
  decision: bounded(decision),
  max: bounded(max),
  reason: truncated(reason, MAX_VOTE_REASON),
  onBehalfOf: bounded(onBehalfOf),
});

const bounded = (text: string | undefined): string | undefined => truncated(text, MAX_TEXT);

function truncated(text: string | undefined, max: number): string | undefined {
  if (text === undefined || text.length <= max) return text;
  return `${text.slice(0, max)}… (${text.length} characters)`;
}
