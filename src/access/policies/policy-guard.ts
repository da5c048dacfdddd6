import { apiVersionOf, type KubeObject, keyOf, type Resource } from '../../api/object.ts';
import { ownLabels } from '../../api/own-labels.ts';
import { secrets } from '../../api/resources.ts';
import { after, done, type Reconciler, type Result } from '../../engine/result.ts';
import type { Source } from '../../engine/source.ts';
import type { Clock } from '../../kit/clock.ts';
import { describe } from '../../kit/errors.ts';
import { type Client, findObject } from '../../kube/client.ts';
import type { Projected, StoreSpec } from '../../kube/store.ts';
import type { HealthCheck } from '../../observe/health.ts';
import type { Log } from '../../observe/log.ts';
import { probe } from './probe.ts';
import { certifyingObjects } from './shape.ts';
import { judge, type LiveObjects, type PolicyRecord, readRecord, recordData, type StoredRecord } from './verdict.ts';

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

type State =
  /** Another process may lead. */
  | { readonly is: 'idle' }
  /** Until the leader has read and probed them. */
  | { readonly is: 'unknown'; readonly problem: string }
  | { readonly is: 'inForce'; readonly record: PolicyRecord; readonly warning?: string }
  | { readonly is: 'gap'; readonly problem: string };

/** The four objects have had the right shape, and refused the probe, since then. */
interface Calm {
  readonly versions: string;
  /** On the monotonic clock. */
  readonly sinceMs: number;
}

interface PolicyGuardDeps {
  readonly client: Client;
  /** Of the record and the probe. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The leader's proof that the admission policies certify what it reads. So far, it only reports:
 * what opens does not depend on it (ADR 0049). One key:
 *
 *   unknown ──▶ in force ◀── record written ◀── 40 s of calm ── gap
 *                  └───────── changed, replaced, deleted, probe accepted ─▲
 */
export class PolicyGuard implements Reconciler {
  readonly #deps: PolicyGuardDeps;
  #state: State = { is: 'idle' };
  #calm: Calm | undefined;
  /** On the monotonic clock: when to probe; undefined once the last answer was a refusal. */
  #probeAtMs: number | undefined = 0;
  #wake: () => void = () => undefined;

  constructor(deps: PolicyGuardDeps) {
    this.#deps = deps;
  }

  /** Begins a term: what an earlier leader found proves nothing. */
  readonly term: Source = {
    name: 'term',
    start: (emit, signal) => {
      this.#state = { is: 'unknown', problem: 'the leader has not verified the admission policies yet' };
      this.#calm = undefined;
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
      if (!signal.aborted)
        this.#set({ is: 'unknown', problem: `cannot verify the admission policies: ${describe(error)}` });
      throw error;
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
    { problem, record }: { readonly problem: string; readonly record: PolicyRecord | undefined },
    { stored, secret }: { readonly stored: StoredRecord; readonly secret: KubeObject | undefined },
    signal: AbortSignal,
  ): Promise<Result> {
    const { clock } = this.#deps;
    if (!record) {
      this.#calm = undefined;
      this.#set({ is: 'gap', problem });
      return after(recheckMs);
    }
    if (stored === 'absent') {
      // Signatures prove what came before the first record.
      if (!(await this.#isRefused(signal))) return after(retryMs);
      await this.#write(record, secret, signal);
      this.#set({ is: 'inForce', record });
      return done;
    }
    const versions = record.versions.join();
    if (this.#calm?.versions !== versions) {
      this.#calm = undefined;
      if (this.#state.is !== 'gap') this.#set({ is: 'gap', problem });
      if (!(await this.#isRefused(signal))) return after(retryMs);
      this.#set({ is: 'gap', problem });
      this.#calm = { versions, sinceMs: clock.monotonic() };
    }
    const leftMs = this.#calm.sinceMs + settleMs - clock.monotonic();
    if (leftMs > 0) return after(leftMs);
    if (!(await this.#isRefused(signal))) {
      this.#calm = undefined;
      return after(retryMs);
    }
    this.#calm = undefined;
    const now = judge(stored, await this.#readLive(signal));
    if (now.is !== 'gap' || now.record?.versions.join() !== versions) return after(0);
    await this.#write(record, secret, signal);
    this.#set({ is: 'inForce', record });
    return done;
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
    const { log } = this.#deps;
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

const pluginOff =
  'the API server accepted a write that the policy drawbridge-access must refuse; check that its admission plugin ValidatingAdmissionPolicy is enabled, then run helm upgrade';

const textOf = (state: State): string | undefined => {
  if (state.is === 'idle') return undefined;
  return state.is === 'inForce' ? state.warning : state.problem;
};

/** Watches one of the four; only that it changed counts. `onRelist`: after a break of the watch. */
export const certifyingSpecs = (onRelist: () => void): StoreSpec<Projected>[] =>
  certifyingObjects.map(({ resource, name }) => ({
    resource: resource as Resource,
    fieldSelector: `metadata.name=${name}`,
    onRelist,
    project: ({ metadata: { uid, resourceVersion } }) =>
      uid && resourceVersion ? { key: keyOf({ name }), uid, resourceVersion } : undefined,
  }));
