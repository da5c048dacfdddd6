import { apiVersionOf, type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { leases, secrets, validatingAdmissionPolicies } from '../../api/resources.ts';
import type { Journal } from '../../audit/journal.ts';
import type { AuditRecord } from '../../audit/record.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Source } from '../../engine/source.ts';
import { type Clock, parseTime } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { SharedCalls } from '../../kit/shared-calls.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Projected, StoreSpec } from '../../kube/store.ts';
import type { HealthCheck } from '../../observe/health.ts';
import type { Log } from '../../observe/log.ts';
import type { Certified, PolicyCheck, TemplateVersion } from './policy-check.ts';
import { probe } from './probe.ts';
import { certifyingObjects } from './shape.ts';
import { isUntouched, maxUnjudged, unjudgedVersions, versionKey } from './unjudged.ts';
import {
  judge,
  type LiveObjects,
  type PolicyRecord,
  type PolicyVersions,
  readRecord,
  recordData,
  type StoredRecord,
} from './verdict.ts';

/** The Secret in the server's namespace: which versions of the policies were in force. */
export const policyRecordName = 'drawbridge-policies';

/** The only key. */
const key = 'policies';

/** API servers learn of a policy within a second. */
const probeDelayMs = 2000;
const retryMs = 1000;
/** Of the right shape, against lost events. */
const recheckMs = 5000;
/** A write ends 34 s after it began, and informers show it within 6 s. */
const settleMs = 40_000;
/** Nothing exists yet, so only API servers that lag may let a creation in. */
const installMs = 5000;

type State =
  /** Another process may lead. */
  | { readonly is: 'idle' }
  /** Until the leader has read and probed them. */
  | { readonly is: 'unknown'; readonly problem: string }
  | { readonly is: 'inForce'; readonly record: PolicyRecord; readonly warning?: string }
  | { readonly is: 'gap'; readonly problem: string; readonly isInstallation?: boolean };

/** The four objects have had the right shape, and refused the probe, since then. */
interface Calm {
  readonly versions: string;
  /** On the monotonic clock. */
  readonly sinceMs: number;
  /** To write a second later. */
  readonly record?: PolicyRecord;
}

interface PolicyGuardDeps {
  readonly client: Client;
  /** Of the record and the probe. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly journal: Journal;
}

/**
 * The leader's proof that the admission policies certify what it reads (ADR 0049). One key:
 *
 *   unknown ──▶ in force ◀── record written ◀── 40 s of calm ── gap
 *                  └───────── changed, replaced, deleted, probe accepted ─▲
 */
export class PolicyGuard implements Reconciler, PolicyCheck {
  readonly #deps: PolicyGuardDeps;
  /** As it is now; undefined if the policies are not in force. */
  readonly #record: SharedCalls<undefined, PolicyRecord | undefined>;
  #state: State = { is: 'idle' };
  #calm: Calm | undefined;
  /** On the monotonic clock: when to probe; undefined once the last answer was a refusal. */
  #probeAtMs: number | undefined = 0;
  #wake: () => void = () => undefined;
  /** In this term. */
  #hasLooked = false;

  constructor(deps: PolicyGuardDeps) {
    this.#deps = deps;
    this.#record = new SharedCalls((_, signal) => this.#readRecord(signal));
  }

  assess(createdAtMs: number): Certified {
    if (this.#state.is === 'gap') return 'gap';
    return this.#state.is !== 'inForce' || isLater(createdAtMs, this.#state.record) ? 'certified' : 'uncertified';
  }

  get isFirstLook(): boolean {
    return !this.#hasLooked;
  }

  async certify(createdAtMs: number, signal: AbortSignal): Promise<Certified> {
    const record = await this.#inForce(signal);
    if (!record) return 'gap';
    return isLater(createdAtMs, record) ? 'certified' : 'uncertified';
  }

  async certifyVersion(template: TemplateVersion, signal: AbortSignal): Promise<Certified> {
    const record = await this.#inForce(signal);
    if (!record) return 'gap';
    const { uid, generation, createdAtMs, spec } = template;
    const isOlder =
      generation === 1 ? !isLater(createdAtMs, record) : record.unjudged.includes(versionKey(uid, generation));
    return isOlder && !(record.first && spec.author === undefined) ? 'uncertified' : 'certified';
  }

  async #inForce(signal: AbortSignal): Promise<PolicyRecord | undefined> {
    return this.#state.is === 'inForce' ? this.#record.ask(key, undefined, signal) : undefined;
  }

  async #readRecord(signal: AbortSignal): Promise<PolicyRecord | undefined> {
    const [live, secret] = await Promise.all([this.#readLive(signal), this.#readSecret(signal)]);
    const stored = readRecord(secret);
    if (judge(stored, live).is === 'inForce' && this.#state.is === 'inForce') return stored as PolicyRecord;
    this.recheck();
    return undefined;
  }

  /** Begins a term: what an earlier leader found proves nothing. */
  readonly term: Source = {
    name: 'term',
    start: (emit, signal) => {
      this.#state = { is: 'unknown', problem: 'the leader has not verified the admission policies yet' };
      this.#calm = undefined;
      this.#hasLooked = false;
      this.#probeAtMs = 0;
      this.#wake = () => emit(key, 'check');
      signal.addEventListener('abort', () => this.#end(), { once: true });
      emit(key, 'term');
      return Promise.resolve();
    },
  };

  /** After an event of one of the four, or a gap in their events. */
  changed(): string[] {
    if (this.#state.is !== 'idle') this.#probeAtMs ??= this.#deps.clock.monotonic() + probeDelayMs;
    return [key];
  }

  /** After a break of a watch, as in a restart of the API server. */
  recheck(): void {
    this.changed();
    this.#wake();
  }

  /** For `/readyz`. */
  readonly health: HealthCheck = () => {
    const state = this.#state;
    if (state.is === 'idle') return undefined;
    if (state.is === 'inForce') return state.warning === undefined ? undefined : { warning: state.warning };
    return state.problem;
  };

  /** 1 or 0; undefined unless this process leads. */
  get gauge(): number | undefined {
    if (this.#state.is === 'idle') return undefined;
    return this.#state.is === 'inForce' ? 1 : 0;
  }

  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    try {
      const [live, secret] = await Promise.all([this.#readLive(signal), this.#readSecret(signal)]);
      return await this.#judge(live, secret, signal);
    } catch (error) {
      const problem = `cannot verify the admission policies: ${describe(error)}`;
      // A gap stays one, so that its end has one line in the journal.
      if (!signal.aborted) this.#set({ is: this.#state.is === 'gap' ? 'gap' : 'unknown', problem });
      throw error;
    } finally {
      this.#hasLooked = true;
    }
  }

  async #judge(live: LiveObjects, secret: KubeObject | undefined, signal: AbortSignal): Promise<Result> {
    const stored = readRecord(secret);
    const verdict = judge(stored, live);
    if (verdict.is === 'gap') return this.#inGap(verdict, { stored, secret }, signal);
    this.#calm = undefined;
    const record = verdict.is === 'upgraded' ? verdict.record : (stored as PolicyRecord);
    if (verdict.is === 'upgraded') await this.#write(record, secret, signal);
    const nowMs = this.#deps.clock.monotonic();
    const isProven = this.#state.is === 'inForce';
    if (this.#probeAtMs === undefined || (isProven && nowMs < this.#probeAtMs)) {
      this.#set({ is: 'inForce', record });
      return this.#probeAtMs === undefined ? done : after(this.#probeAtMs - nowMs);
    }
    const answer = await this.#probe(signal);
    switch (answer.is) {
      case 'refused':
        this.#set({ is: 'inForce', record });
        return done;
      case 'accepted': {
        // The record must not outlive this process.
        await this.#write(undefined, secret, signal);
        this.#set({ is: 'gap', problem: pluginOff });
        return after(retryMs);
      }
      case 'unproven': {
        const problem = `nothing proves that the API server runs admission policies: ${answer.problem}`;
        this.#set(isProven ? { is: 'inForce', record, warning: problem } : { is: 'unknown', problem });
        return after(isProven ? recheckMs : retryMs);
      }
    }
  }

  /** Waits until all writes that the policies did not see are visible. */
  async #inGap(
    { problem, record }: { readonly problem: string; readonly record: PolicyVersions | undefined },
    { stored, secret }: { readonly stored: StoredRecord; readonly secret: KubeObject | undefined },
    signal: AbortSignal,
  ): Promise<Result> {
    const { clock, journal } = this.#deps;
    // Without a template or request of before, nothing can have been written in a gap.
    const isInstallation = stored === 'absent' && (await isUntouched(this.#deps.client, signal));
    const gap = { is: 'gap', problem, isInstallation } as const;
    if (!record) {
      this.#calm = undefined;
      this.#set(gap);
      return after(recheckMs);
    }
    const versions = record.versions.join();
    if (this.#calm?.versions !== versions) {
      this.#calm = undefined;
      if (this.#state.is !== 'gap') this.#set(gap);
      if (!(await this.#isRefused(signal))) return after(retryMs);
      this.#set(gap);
      this.#calm = { versions, sinceMs: clock.monotonic() };
    }
    const leftMs = this.#calm.sinceMs + (isInstallation ? installMs : settleMs) - clock.monotonic();
    if (leftMs > 0) return after(leftMs);
    if (!(await this.#isRefused(signal))) {
      this.#calm = undefined;
      return after(retryMs);
    }
    const now = judge(stored, await this.#readLive(signal));
    if (now.is !== 'gap' || now.record?.versions.join() !== versions) {
      this.#calm = undefined;
      return after(0);
    }
    const certified = this.#calm.record ?? (await this.#certifiedFromNow(record, stored, signal));
    if (!certified) return after(recheckMs);
    if (!this.#calm.record) {
      this.#calm = { ...this.#calm, record: certified };
      // Creation times have whole seconds, so the record shows only in a later one than `since`.
      return after(1000);
    }
    if (!isInstallation) await journal.append(lineOf('proven', problem));
    await this.#write(certified, secret, signal);
    this.#calm = undefined;
    this.#set({ is: 'inForce', record: certified });
    return done;
  }

  /** Undefined if the record would be too large. */
  async #certifiedFromNow(
    versions: PolicyVersions,
    stored: StoredRecord,
    signal: AbortSignal,
  ): Promise<PolicyRecord | undefined> {
    const unjudged = await unjudgedVersions(this.#deps.client, signal);
    if (unjudged.length <= maxUnjudged)
      return { ...versions, since: await this.#serverTime(signal), first: stored === 'absent', unjudged };
    const found = `${unjudged.length} template versions have no verdict about their author`;
    this.#set({ is: 'gap', problem: `${found}; at most ${maxUnjudged} are allowed; delete templates` });
    return undefined;
  }

  async #isRefused(signal: AbortSignal): Promise<boolean> {
    const answer = await this.#probe(signal);
    if (answer.is === 'refused') return true;
    const problem = answer.is === 'accepted' ? pluginOff : answer.problem;
    this.#set({ is: 'gap', problem });
    return false;
  }

  async #probe(signal: AbortSignal) {
    const { client, namespace, clock } = this.#deps;
    const answer = await probe(client, namespace, signal);
    this.#probeAtMs = answer.is === 'refused' ? undefined : clock.monotonic() + retryMs;
    return answer;
  }

  #set(state: State): void {
    const before = this.#state;
    if (before.is === 'idle') return;
    this.#state = state;
    const text = textOf(state);
    if (text === textOf(before)) return;
    const { log, journal } = this.#deps;
    if (state.is === 'gap' && before.is !== 'gap' && !state.isInstallation)
      journal.append(lineOf('unproven', state.problem)).catch((error: unknown) => {
        log.error('audit line lost', { event: 'policies', error: describe(error) });
      });
    if (text === undefined) log.info('the admission policies are in force');
    else log.error('the admission policies are not proven to be in force', { reason: text });
  }

  #end(): void {
    this.#state = { is: 'idle' };
    this.#wake = () => undefined;
  }

  /** Each GET has no resourceVersion, so it sees every change that was stored before it. */
  #readLive(signal: AbortSignal): Promise<LiveObjects> {
    const { client } = this.#deps;
    return Promise.all(
      certifyingObjects.map(({ resource, name }) => findObject(client, resource, { name }, { signal })),
    );
  }

  /** Of a dry run: only the API server sets creation times. */
  async #serverTime(signal: AbortSignal): Promise<string> {
    const { client, namespace } = this.#deps;
    const metadata = { name: '', generateName: 'drawbridge-', namespace };
    const object = { apiVersion: apiVersionOf(leases), kind: leases.kind, metadata };
    const { creationTimestamp = '' } = (await client.create(leases, object, { dryRun: true, signal })).metadata;
    return creationTimestamp;
  }

  #readSecret(signal: AbortSignal): Promise<KubeObject | undefined> {
    return findObject(this.#deps.client, secrets, this.#recordName, { signal });
  }

  /** Undefined empties it. Rejects with a 409 ApiError if another process wrote it. */
  async #write(record: PolicyRecord | undefined, secret: KubeObject | undefined, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const object = {
      apiVersion: apiVersionOf(secrets),
      kind: secrets.kind,
      metadata: { ...this.#recordName, labels: { ...ownLabels } },
      data: record ? recordData(record) : {},
    };
    if (!secret) await client.create(secrets, object, { signal });
    else {
      const { resourceVersion } = secret.metadata;
      const patch = { metadata: { resourceVersion }, data: record ? object.data : null };
      await client.mergePatch(secrets, this.#recordName, patch, { signal });
    }
  }

  get #recordName() {
    return { namespace: this.#deps.namespace, name: policyRecordName };
  }
}

/** Creation times have whole seconds: one of the same second may be earlier. */
const isLater = (createdAtMs: number, { since }: PolicyRecord): boolean => createdAtMs > (parseTime(since) ?? 0);

/** Begin and end of a gap: who acted in between is unproven. */
const lineOf = (verdict: 'proven' | 'unproven', message: string): AuditRecord => ({
  event: 'policies',
  verdict,
  who: { user: '' },
  what: {
    operation: 'VERIFY',
    apiVersion: apiVersionOf(validatingAdmissionPolicies),
    kind: validatingAdmissionPolicies.kind,
  },
  code: 'PoliciesMissing',
  message,
});

const pluginOff =
  'the API server accepted a write that the policy drawbridge-access must refuse; check that its admission plugin ValidatingAdmissionPolicy is enabled, then run helm upgrade';

const textOf = (state: State): string | undefined => {
  if (state.is === 'idle') return undefined;
  return state.is === 'inForce' ? state.warning : state.problem;
};

/** Only that it exists counts. */
export const policyRecordSpec = (namespace: string): StoreSpec<Projected> => ({
  resource: secrets,
  namespace,
  fieldSelector: `metadata.name=${policyRecordName}`,
  project: ({ metadata: { uid, resourceVersion } }) =>
    uid && resourceVersion ? { key: keyOf({ namespace, name: policyRecordName }), uid, resourceVersion } : undefined,
});

/** Watches one of the four; only that it changed counts. `onRelist`: after a break of the watch. */
export const certifyingSpecs = (onRelist: () => void): StoreSpec<Projected>[] =>
  certifyingObjects.map(({ resource, name }) => ({
    resource: resource as Resource,
    fieldSelector: `metadata.name=${name}`,
    onRelist,
    project: ({ metadata: { uid, resourceVersion } }) =>
      uid && resourceVersion ? { key: keyOf({ name }), uid, resourceVersion } : undefined,
  }));
