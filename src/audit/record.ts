import type { ChainLink } from './chain.ts';

/**
 * The user whom a line is about, as the API server authenticated them: the caller; for a grant or a revocation, the requester; for a
 * review, the person who used the emergency; for an abandonment, the user who abandoned the component.
 */
interface AuditSubject {
  /** Empty if the server acted on its own. */
  readonly user: string;
  readonly uid?: string;
  /** The first 32 are written; see `decidingGroupsFirst`. */
  readonly groups?: readonly string[];
}

/** The object of an operation. */
interface AuditObject {
  /**
   * From a webhook: `CREATE`, `UPDATE`, `DELETE`, or `CONNECT`. From a controller: `GRANT`, `REVOKE`, `REVIEW` (of an emergency), or
   * `ABANDON`. From the gateway: `CONNECT` for a session and its recording, `GET` for a view of either, and `DELETE` for the deletion of a
   * recording.
   */
  readonly operation: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** The subresources of a Pod through which a user enters it. */
export const connectSubresources = ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers'] as const;
export type ConnectSubresource = (typeof connectSubresources)[number];

/** A vote that approved a grant or an extension, ended access, or reviewed an emergency. */
interface AuditVote {
  readonly uid: string;
  /** Absent if the vote no longer exists. */
  readonly voter?: string;
  readonly decision?: string;
  /** The longest duration that the vote approves. */
  readonly max?: string;
  readonly reason?: string;
  /** The person for whom the voter, a program, claims to vote. */
  readonly onBehalfOf?: string;
}

/** The content of one line. The journal writes only these fields, and nothing else of the objects, which may contain secrets. */
export interface AuditRecord {
  /** What the line is about. docs/reference/audit-journal.md describes each event with its verdicts. */
  readonly event: 'admission' | 'grant' | 'revocation' | 'review' | 'session' | ConnectSubresource;
  readonly verdict:
    | 'allowed'
    | 'denied'
    | 'granted'
    | 'extended'
    | 'revoked'
    | 'reviewed'
    | 'observed'
    | 'opened'
    | 'ended'
    | 'recorded'
    | 'unrecorded'
    | 'deleted'
    | 'viewed';
  readonly who: AuditSubject;
  readonly what: AuditObject;
  /** Name of the access template, in the object's namespace. */
  readonly template?: string;
  readonly templateUid?: string;
  readonly templateGeneration?: number;
  /** The requested duration, as written; in the line of a granted extension, its `by`. */
  readonly duration?: string;
  /** The requested pod. */
  readonly target?: string;
  /** The requested start, as written. */
  readonly startAt?: string;
  /** True if the request asks for emergency access. */
  readonly emergency?: boolean;
  /** The reason of a request, an extension, a vote, a revocation, or an abandonment, as the user wrote it. */
  readonly reason?: string;
  /** The votes that approved the grant or the extension, ended access, or reviewed an emergency. */
  readonly votes?: readonly AuditVote[];
  /**
   * Name of the access request, in the object's namespace, whose grant allowed the user to enter the pod or opened the session. If no grant
   * allowed it, the request that owns the access pod. For a vote, the request that it is about.
   */
  readonly request?: string;
  /** The pod that was opened or entered. */
  readonly pod?: string;
  readonly container?: string;
  /** The component of the inventory that wrote, or that a user abandoned. */
  readonly component?: string;
  /** The latest run of that component: `<uid of the entry>.<component>.<number>`. */
  readonly run?: string;
  /** Whether the user has a terminal with input. */
  readonly interactive?: boolean;
  /** The session of the gateway: a random UUID. */
  readonly session?: string;
  /** What the session is: `exec`, `attach`, or `portforward`. */
  readonly stream?: string;
  /** SHA-256 (hex) of the JSON list of the words of the command, which may contain secrets itself. */
  readonly commandHash?: string;
  /** Bytes of a session to the pod, and from it. */
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  /** Exit code of the command of a session. */
  readonly exitCode?: number;
  /** In a line about a recording: the number of the chunk, from 1; if `complete`, how many chunks the recording has. */
  readonly chunk?: number;
  /** Bytes of the chunk, and their SHA-256 (hex). */
  readonly bytes?: number;
  readonly sha256?: string;
  /** True in the line after the last chunk of a recording. */
  readonly complete?: boolean;
  /** End of the grant, RFC 3339. */
  readonly expiresAt?: string;
  /** Stable code of the reason, for example `NotEligible`. */
  readonly code?: string;
  readonly message?: string;
  readonly latencyMs?: number;
  readonly dryRun?: boolean;
  /** `request.uid` of the AdmissionReview. The log of the server names it, too, if the webhook failed. */
  readonly reviewUid?: string;
}

/** The fields that the journal adds to each record. */
interface JournalFields extends ChainLink {
  /** RFC 3339 with microseconds. */
  readonly time: string;
  readonly replica: string;
}

/** `groups` with those in `deciding` first, so that the journal keeps them even if it truncates the list. */
export function decidingGroupsFirst(groups: readonly string[], deciding: readonly string[]): string[] {
  const decides = new Set(deciding);
  return [...groups.filter((group) => decides.has(group)), ...groups.filter((group) => !decides.has(group))];
}

/** Maximum length of a text, characters. */
const MAX_TEXT = 1024;
const MAX_GROUPS = 32;
/** Maximum number of votes in a line. */
const MAX_VOTES = 40;
/** Maximum length of each reason in a list of votes, characters. The line of the vote itself has up to 1,024. */
const MAX_VOTE_REASON = 256;

/**
 * Formats one line of JSON, without its hash and newline. Writes only the fields below, truncates texts at 1,024 characters and reasons of
 * votes at 256, and escapes characters that would confuse a terminal or a line reader.
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

/** Characters that JSON does not escape: DEL, C1 controls, line and paragraph separators, bidirectional marks, and the byte order mark. */
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
