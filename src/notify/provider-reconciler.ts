import { notificationProviders } from '../api/notify/notification-provider.ts';
import type { Condition } from '../api/object.ts';
import { secrets } from '../api/resources.ts';
import { after, at, done, type Reconciler, type Result } from '../engine/result.ts';
import { type Clock, formatTime, parseTime } from '../kit/clock.ts';
import { type Client, findObject } from '../kube/client.ts';
import { isForbidden } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import { WriteThroughCache } from '../kube/write-through-cache.ts';
import { hashOf } from './fact.ts';
import type { Outbox, Pending } from './outbox/outbox.ts';
import { type Answer, type Message, type Send, type Sink, UnusableSink } from './sink.ts';
import { sinkOf } from './sink-of.ts';
import { type ProviderView, readyOf, viewProvider } from './stores.ts';
import { type Written, writeStatus } from './write-status.ts';

interface ProviderDeps {
  readonly providers: Store<ProviderView>;
  readonly client: Pick<Client, 'get' | 'mergePatch'>;
  readonly send: Send;
  readonly source: string;
  readonly clock: Clock;
  /** Of the present leadership. */
  readonly outbox: () => Outbox;
  /** After each answer. `what` happened to these. */
  readonly onSettled: (what: 'delivered' | 'failed' | 'undelivered' | 'moot', deliveries: readonly Pending[]) => void;
}

/** Until a Secret or a spec that cannot be used is read again. */
const problemMs = 60_000;
const testEveryMs = 5_000;
/** So that sinks of one namespace that hang leave workers to others. */
const maxSendsOfNamespace = 16;

/**
 * Sends the next message of a provider, and writes to its status what the sink answered. Keys are
 * `namespace/name`, so a sink delays only itself.
 */
export class ProviderReconciler implements Reconciler {
  readonly #deps: ProviderDeps;
  readonly #views: WriteThroughCache<ProviderView>;
  /** The namespace of each message on its way. */
  readonly #sending: string[] = [];
  /** By key: what the status must still say. A test whose answer cannot be written is not repeated. */
  readonly #owed = new Map<string, Written>();

  constructor(deps: ProviderDeps) {
    this.#deps = deps;
    const { providers, clock } = deps;
    this.#views = new WriteThroughCache({ watched: (key) => providers.get(key), uidOf: ({ uid }) => uid, clock });
    providers.subscribe((event) => this.#views.observe(event));
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { clock, outbox, onSettled } = this.#deps;
    const provider = this.#views.get(key);
    for (const { key: itsKey, uid } of outbox().providers) {
      if (itsKey === key && uid !== provider?.uid) onSettled('moot', outbox().dropProvider(uid));
    }
    if (!provider || !readyOf(provider)) this.#owed.delete(key);
    if (!provider) return done;
    onSettled('undelivered', outbox().expire(provider.uid, clock.now()));
    if (!readyOf(provider)) {
      // The provider is new or was edited: what was asked of the earlier one does not matter.
      outbox().release(provider.uid, clock.now());
      return (await this.#write(provider, { ready: await this.#judge(provider, signal) }, signal)) ? after(0) : done;
    }
    const owed = this.#owed.get(key) ?? {};
    const next = this.#next(provider, owed);
    if (typeof next !== 'object') {
      await this.#write(provider, owed, signal);
      return next === undefined ? done : at(next);
    }
    const { namespace } = provider;
    if (this.#sending.filter((one) => one === namespace).length >= maxSendsOfNamespace) return after(1_000);
    this.#sending.push(namespace);
    await this.#send(provider, next, signal).finally(() => this.#sending.splice(this.#sending.indexOf(namespace), 1));
    return after(0);
  }

  /** What to send, nothing for a test message; or when (epoch ms). */
  #next(provider: ProviderView, owed: Written): readonly Pending[] | number | undefined {
    const { clock, outbox } = this.#deps;
    const nowMs = clock.now();
    const testMs = testMsOf(provider, owed.lastTest ?? provider.status?.lastTest, nowMs);
    if (testMs !== undefined && testMs <= nowMs) return [];
    const isStopped = provider.spec.suspend === true || (owed.ready ?? readyOf(provider))?.reason === 'Gone';
    const next = isStopped ? undefined : outbox().next(provider.uid, nowMs);
    if (typeof next === 'object') return next;
    const times = [testMs, next, outbox().nextExpiryMs(provider.uid)].filter((ms) => ms !== undefined);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  async #send(provider: ProviderView, sent: readonly Pending[], signal: AbortSignal): Promise<void> {
    const { outbox, clock, onSettled } = this.#deps;
    // A message belongs to the leadership in which it began.
    const its = outbox();
    its.took(provider.uid, clock.now());
    const answer = await this.#answerTo(provider, sent, signal);
    const nowMs = clock.now();
    const isTest = sent.length === 0;
    if (!isTest) {
      its.settle(sent, answer, nowMs);
      onSettled(answer.delivered ? 'delivered' : 'failed', sent);
    } else if (answer.delivered) its.release(provider.uid, nowMs);
    const { delivered, said: message } = answer;
    const reason = delivered ? 'Ready' : answer.code;
    // The message of each answer would change the object all the time.
    const isKnown = !this.#owed.get(provider.key)?.ready && readyOf(provider)?.reason === reason;
    const written = {
      ...(isKnown ? {} : { ready: { status: delivered ? 'True' : 'False', reason, message } as const }),
      ...(isTest ? { lastTest: { id: provider.testId ?? '', at: formatTime(nowMs), delivered, answer: message } } : {}),
    };
    await this.#write(provider, written, signal);
  }

  /** What can be known before the first message. */
  async #judge(provider: ProviderView, signal: AbortSignal): Promise<Pick<Condition, 'status' | 'reason' | 'message'>> {
    try {
      await this.#sinkOf(provider, signal);
    } catch (error) {
      if (!(error instanceof UnusableSink)) throw error;
      return { status: 'False', reason: error.code, message: error.message };
    }
    const message = `nothing was sent yet; try it: drawbridge notify test ${provider.name} -n ${provider.namespace}`;
    return { status: 'Unknown', reason: 'Unproven', message };
  }

  /** Rejects if the API server does not answer. */
  async #answerTo(provider: ProviderView, sent: readonly Pending[], signal: AbortSignal): Promise<Answer> {
    try {
      const sink = await this.#sinkOf(provider, signal);
      return await this.#deps.send(sink, this.#messageOf(provider, sent), signal);
    } catch (error) {
      if (!(error instanceof UnusableSink)) throw error;
      return { delivered: false, code: error.code, said: error.message, retryAfterMs: problemMs };
    }
  }

  async #sinkOf({ namespace, spec }: ProviderView, signal: AbortSignal): Promise<Sink> {
    if (spec.suspend)
      throw new UnusableSink('Suspended', 'spec.suspend is true, so messages wait, for at most 24 h; set it to false');
    if (spec.secretRef === undefined) return sinkOf(spec, undefined);
    const name = { namespace, name: spec.secretRef.name };
    try {
      const secret = await findObject(this.#deps.client, secrets, name, { signal });
      return sinkOf(spec, secret);
    } catch (error) {
      throw isForbidden(error) ? unreadable(name) : error;
    }
  }

  #messageOf({ testId = '', spec }: ProviderView, sent: readonly Pending[]): Message {
    const { source, clock, outbox } = this.#deps;
    const [first, ...others] = sent;
    const base = { source, nowMs: clock.now(), facts: sent.map(({ fact }) => fact) };
    if (!first) return { ...base, id: `test-${hashOf(testId, 22)}` };
    const earlier = others.length === 0 ? outbox().refOf(first) : undefined;
    return {
      ...base,
      // A repeated digest may have other facts; then it is another message.
      id: others.length === 0 ? first.fact.id : `digest-${hashOf(sent.map(({ id }) => id).join(), 22)}`,
      ...(first.to && { to: first.to }),
      ...(spec.linkBase && { linkBase: spec.linkBase }),
      ...(earlier && { earlier }),
    };
  }

  async #write(provider: ProviderView, change: Written, signal: AbortSignal): Promise<ProviderView | undefined> {
    const status = { ...this.#owed.get(provider.key), ...change };
    this.#owed.set(provider.key, status);
    const view = await this.#views.call(provider.key, async () => {
      const written = await writeStatus(this.#deps, notificationProviders, provider, status, signal);
      return written && viewProvider(written);
    });
    this.#owed.delete(provider.key);
    return view;
  }
}

/** When a test message is due (epoch ms), if one is asked for. */
function testMsOf({ testId }: ProviderView, last: Written['lastTest'], nowMs: number): number | undefined {
  if (testId === undefined || testId === last?.id) return undefined;
  // The clock may have been set back.
  return Math.min(Math.max(nowMs, (parseTime(last?.at ?? '') ?? 0) + testEveryMs), nowMs + testEveryMs);
}

const unreadable = ({ namespace, name }: { namespace: string; name: string }): UnusableSink =>
  new UnusableSink(
    'SecretUnreadable',
    `the ServiceAccount drawbridge-notify may not read Secret ${name}; ask an administrator to list ${namespace} in the chart value ` +
      `notify.secretNamespaces, or bind a Role to it with the verb get on secrets, resourceNames [${name}]`,
  );
