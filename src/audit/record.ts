import type { ChainLink } from './chain.ts';

/** Who did it, as the apiserver authenticated them. */
interface AuditSubject {
  readonly user: string;
  readonly uid?: string;
  /** The first 32 are written; see `decidingFirst`. */
  readonly groups?: readonly string[];
}

/** What it was done to. */
interface AuditObject {
  /** `CREATE`, `UPDATE`, `DELETE`, `CONNECT`; for grants and revocations what the controller did. */
  readonly operation: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** The subresources of a Pod that let somebody in. */
export const connectSubresources = ['exec', 'attach', 'portforward', 'proxy', 'ephemeralcontainers'] as const;
export type ConnectSubresource = (typeof connectSubresources)[number];

/** One decision. Only the fields named here are ever written; nothing of the objects themselves, which may hold secrets. */
export interface AuditRecord {
  readonly event: 'admission' | 'grant' | 'revocation' | ConnectSubresource;
  readonly verdict: 'allowed' | 'denied' | 'granted' | 'revoked' | 'observed';
  readonly who: AuditSubject;
  readonly what: AuditObject;
  /** Name of the access template, in the object's namespace. */
  readonly template?: string;
  /** Name of the access request that a pod was entered by, in the object's namespace. */
  readonly request?: string;
  /** The pod that was opened or entered. */
  readonly pod?: string;
  readonly container?: string;
  /** The component of the inventory whose write it is. */
  readonly component?: string;
  /** The run of that component that was the latest one: `<uid of the entry>.<component>.<number>`. */
  readonly run?: string;
  /** A terminal with input, as against a single command. */
  readonly interactive?: boolean;
  /** End of the grant, RFC 3339. */
  readonly expiresAt?: string;
  /** Stable code of the reason, for example `NotEligible`. */
  readonly code?: string;
  readonly message?: string;
  readonly latencyMs?: number;
  readonly dryRun?: boolean;
  /** `request.uid` of the AdmissionReview; the apiserver's own audit log has it too. */
  readonly reviewUid?: string;
}

/** What the journal adds to each record. */
interface JournalFields extends ChainLink {
  /** RFC 3339 with microseconds. */
  readonly time: string;
  readonly replica: string;
}

/** The groups, those among them first that the decision rests on: however many there are, the journal keeps these. */
export function decidingGroupsFirst(groups: readonly string[], deciding: readonly string[]): string[] {
  const decides = new Set(deciding);
  return [...groups.filter((group) => decides.has(group)), ...groups.filter((group) => !decides.has(group))];
}

const MAX_TEXT = 1024;
const MAX_GROUPS = 32;

/** One line of JSON without its hash and its newline: allow-listed fields, bounded lengths, and nothing a terminal or a line reader could trip over. */
export function formatRecord(stamp: JournalFields, record: AuditRecord): string {
  const { who, what } = record;
  const groups = who.groups ?? [];
  const line = JSON.stringify({
    chain: stamp.chain,
    seq: stamp.seq,
    lost: stamp.lost || undefined,
    time: stamp.time,
    replica: bounded(stamp.replica),
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
    request: bounded(record.request),
    pod: bounded(record.pod),
    container: bounded(record.container),
    component: bounded(record.component),
    run: bounded(record.run),
    interactive: record.interactive,
    expiresAt: bounded(record.expiresAt),
    code: bounded(record.code),
    message: bounded(record.message),
    latencyMs: record.latencyMs,
    dryRun: record.dryRun,
    reviewUid: bounded(record.reviewUid),
    prev: stamp.prev,
  });
  return line.replace(UNPRINTABLE, escapeUnit);
}

/** Controls that JSON leaves as they are: DEL and C1, the line and paragraph separators, and what turns text around. */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const escapeUnit = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

function bounded(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= MAX_TEXT) return text;
  return `${text.slice(0, MAX_TEXT)}… (${text.length} characters)`;
}
