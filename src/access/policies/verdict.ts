import type { KubeObject } from '../../api/object.ts';
import { parseTime } from '../../kit/clock.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import { certifies, certifyingObjects, shapeProblem, titleOf } from './shape.ts';

/** What certified objects must meet. */
export interface PolicyVersions {
  /** `uid/generation`, in the order of `certifyingObjects`. */
  readonly versions: readonly string[];
  /** Of the server that wrote it. */
  readonly certifies: number;
}

/** Which versions of the certifying objects have been in force, and since when. */
export interface PolicyRecord extends PolicyVersions {
  /** RFC 3339, by the clock of the API server: all that was created later met them. */
  readonly since: string;
  /** No gap has ended since the installation: templates without an author are older than it. */
  readonly first: boolean;
  /** Of templates, as `versionKey`: edits before `since` that no leader had judged then. */
  readonly unjudged: readonly string[];
}

/** `unreadable`: it exists, but has no record. */
export type StoredRecord = PolicyRecord | 'absent' | 'unreadable';

export type Verdict =
  | { readonly is: 'inForce' }
  /** The objects were in force without a pause, but the record must name these. */
  | { readonly is: 'upgraded'; readonly record: PolicyRecord }
  /** They may have let something through. `record` is what to write after 40 s of calm. */
  | { readonly is: 'gap'; readonly problem: string; readonly record: PolicyVersions | undefined };

/** The live objects, in the order of `certifyingObjects`; undefined if one does not exist. */
export type LiveObjects = readonly (KubeObject | undefined)[];

/**
 * A pure function of what is recorded and what is live:
 *
 *   wrong shape ─────────────────────────────────────────────▶ gap, nothing to record yet
 *   right shape, each as recorded ───────────────────────────▶ in force
 *   right shape, each as recorded or one generation later ───▶ upgraded
 *   else: another uid, two changes, no record, new rules ────▶ gap, to be recorded after a wait
 */
export function judge(stored: StoredRecord, live: LiveObjects): Verdict {
  const problem = certifyingObjects.map((expected, index) => shapeProblem(expected, live[index])).find(Boolean);
  if (problem !== undefined) return { is: 'gap', problem, record: undefined };
  const record = { versions: live.map(versionOf), certifies };
  if (stored === 'absent') return { is: 'gap', problem: 'no record says that the policies were in force', record };
  if (stored === 'unreadable') return { is: 'gap', problem: 'the record of the policies is empty or damaged', record };
  if (stored.certifies < certifies) {
    const had = `the record is of a server that relied on fewer rules (${stored.certifies} instead of ${certifies})`;
    return { is: 'gap', problem: had, record };
  }
  const changed = certifyingObjects.findIndex(
    (_, index) => !isSuccessor(stored.versions[index], record.versions[index]),
  );
  const object = certifyingObjects[changed];
  if (object) {
    const versions = `its uid and generation are ${record.versions[changed]}, and were ${stored.versions[changed] ?? 'unknown'}`;
    return { is: 'gap', problem: `${titleOf(object)} was replaced or changed more than once: ${versions}`, record };
  }
  const isSame =
    stored.certifies === certifies && stored.versions.every((one, index) => one === record.versions[index]);
  return isSame ? { is: 'inForce' } : { is: 'upgraded', record: { ...stored, ...record } };
}

const versionOf = (object: KubeObject | undefined): string =>
  `${object?.metadata.uid ?? ''}/${object?.metadata.generation ?? 0}`;

/** One change keeps the rules in force: the shape before it was right, as it is now. */
function isSuccessor(before: string | undefined, now: string | undefined): boolean {
  const [uidBefore, generationBefore] = before?.split('/') ?? [];
  const [uid, generation] = now?.split('/') ?? [];
  const step = Number(generation) - Number(generationBefore);
  return uid !== '' && uid === uidBefore && (step === 0 || step === 1);
}

const recordField = 'record';

export const recordData = (record: PolicyRecord): Readonly<Record<string, string>> => ({
  [recordField]: Buffer.from(JSON.stringify(record)).toString('base64'),
});

export function readRecord(secret: KubeObject | undefined): StoredRecord {
  if (!secret) return 'absent';
  const text = own(own(secret, 'data'), recordField);
  try {
    const parsed: unknown = JSON.parse(Buffer.from(String(text), 'base64').toString('utf8'));
    const versions = own(parsed, 'versions');
    const number = own(parsed, 'certifies');
    const since = own(parsed, 'since');
    const first = own(parsed, 'first');
    const unjudged = own(parsed, 'unjudged');
    const isRead =
      isRecord(parsed) &&
      Array.isArray(versions) &&
      versions.length === certifyingObjects.length &&
      versions.every((version) => typeof version === 'string') &&
      typeof number === 'number' &&
      typeof since === 'string' &&
      parseTime(since) !== undefined &&
      typeof first === 'boolean' &&
      Array.isArray(unjudged);
    return isRead ? { versions: versions as string[], certifies: number, since, first, unjudged } : 'unreadable';
  } catch {
    return 'unreadable';
  }
}
