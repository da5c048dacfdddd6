import { secrets } from '../api/resources.ts';
import { after, at, done, type Reconciler, type Result } from '../engine/result.ts';
import { type Clock, formatTime } from '../kit/clock.ts';
import { shorten } from '../kit/shorten.ts';
import { type Client, findObject } from '../kube/client.ts';
import { isForbidden } from '../kube/errors.ts';
import type { Store } from '../kube/store.ts';
import type { Outbox, Pending } from './outbox/outbox.ts';
import type { ProviderHealths, Tested } from './provider-healths.ts';
import type { Message, Send, Sink } from './sink.ts';
import { type SinkProblem, sinkOf } from './sink-of.ts';
import type { ProviderView } from './stores.ts';

interface DeliveryDeps {
  readonly providers: Store<ProviderView>;
  readonly client: Pick<Client, 'get'>;
  readonly send: Send;
  readonly source: string;
  readonly clock: Clock;
  /** Of the present leadership. */
  readonly outbox: () => Outbox;
  readonly healths: ProviderHealths;
  /** After each answer. `what` happened to these. */
  readonly onSettled: (what: 'delivered' | 'failed' | 'undelivered' | 'moot', deliveries: readonly Pending[]) => void;
}

/** `untilMs`: monotonic. */
interface CachedSink {
  readonly sink: Sink;
  /** Of the provider: uid and generation. */
  readonly version: string;
  readonly untilMs: number;
}

const secretTrustMs = 60_000;
/** Until a Secret or a spec that cannot be used is read again. */
const problemMs = 60_000;
/** So that providers of one namespace that hang leave workers to those of others. */
const maxSendsOfNamespace = 64;

/** Sends the next message of a provider. Keys are `namespace/name`, so a sink delays only itself. */
export class DeliveryReconciler implements Reconciler {
  readonly #deps: DeliveryDeps;
  readonly #sinks = new Map<string, CachedSink>();
  readonly #sending = new Map<string, number>();

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { providers, clock, outbox, healths, onSettled } = this.#deps;
    const provider = providers.get(key);
    for (const { key: itsKey, uid } of outbox().providers) {
      if (itsKey === key && uid !== provider?.uid) onSettled('moot', outbox().dropProvider(uid));
    }
    if (!provider) return this.#forget(key);
    onSettled('undelivered', outbox().expire(provider.uid, clock.now()));
    if (healths.begin(provider)) outbox().release(provider.uid, clock.now());
    const next = this.#next(provider);
    if (next === undefined) return done;
    if (typeof next === 'number') return at(next);
    const { namespace } = provider;
    const sending = this.#sending.get(namespace) ?? 0;
    if (sending >= maxSendsOfNamespace) return after(1000);
    this.#sending.set(namespace, sending + 1);
    try {
      await this.#send(provider, next, signal);
    } finally {
      const left = (this.#sending.get(namespace) ?? 1) - 1;
      if (left > 0) this.#sending.set(namespace, left);
      else this.#sending.delete(namespace);
    }
    return after(0);
  }

  /** What to send, or when (epoch ms). */
  #next(provider: ProviderView): readonly Pending[] | 'test' | number | undefined {
    const { clock, outbox, healths } = this.#deps;
    const nowMs = clock.now();
    const testMs = healths.testMs(provider, nowMs);
    if (testMs !== undefined && testMs <= nowMs) return 'test';
    const isStopped = provider.spec.suspend === true || healths.isGone(provider);
    const next = isStopped ? undefined : outbox().next(provider.uid, nowMs);
    if (next && 'send' in next) return next.send;
    const times = [testMs, next?.atMs, outbox().nextExpiryMs(provider.uid)].filter((ms) => ms !== undefined);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  async #send(provider: ProviderView, what: readonly Pending[] | 'test', signal: AbortSignal): Promise<void> {
    const { outbox, clock, healths, onSettled } = this.#deps;
    const sent = what === 'test' ? [] : what;
    // A message belongs to the leadership in which it began.
    const its = outbox();
    const sink = provider.spec.suspend ? suspended : await this.#sinkOf(provider, signal);
    if ('code' in sink) {
      if (sink.code !== 'Suspended') healths.saw(provider, { state: sink.code, message: sink.message });
      if (what === 'test') healths.tested(provider, this.#test(provider, false, sink.message), clock.now());
      else its.hold(provider.uid, clock.now() + problemMs);
      return;
    }
    const [first] = sent;
    if (first) its.took(provider.uid, clock.now(), first.fact.request.namespace);
    const answer = await this.#deps.send(sink, this.#messageOf(provider, sent), signal);
    healths.saw(provider, { state: answer.delivered ? 'Ready' : answer.code, message: answer.said });
    if (what === 'test') {
      healths.tested(provider, this.#test(provider, answer.delivered, answer.said), clock.now());
      // The sink can be reached again.
      if (answer.delivered) its.release(provider.uid, clock.now());
      return;
    }
    its.settle(sent, answer, clock.now());
    onSettled(answer.delivered ? 'delivered' : 'failed', sent);
  }

  #messageOf({ testId = '' }: ProviderView, sent: readonly Pending[]): Message {
    const { source, clock, outbox } = this.#deps;
    const [first] = sent;
    const base = { source, nowMs: clock.now() };
    if (!first) return { ...base, id: `test-${testId}`, facts: [] };
    const earlier = sent.length === 1 ? outbox().refOf(first) : undefined;
    return {
      ...base,
      // A repeated digest may have more facts, and then has another last one.
      id: sent.length === 1 ? first.fact.id : `digest-${first.id}-${sent.at(-1)?.id}`,
      facts: sent.map(({ fact }) => fact),
      ...(first.to === undefined ? {} : { to: first.to }),
      ...(first.linkBase === undefined ? {} : { linkBase: first.linkBase }),
      ...(earlier === undefined ? {} : { earlier }),
    };
  }

  /** Rejects if the API server does not answer. */
  async #sinkOf(provider: ProviderView, signal: AbortSignal): Promise<Sink | UnusableSink> {
    const { clock, client } = this.#deps;
    const { uid, key, namespace, generation, spec } = provider;
    const cached = this.#sinks.get(key);
    const version = `${uid}/${generation}`;
    if (cached?.version === version && cached.untilMs > clock.monotonic()) return cached.sink;
    const name = { namespace, name: spec.secretRef?.name ?? '' };
    try {
      const secret = spec.secretRef && (await findObject(client, secrets, name, { signal }));
      if (spec.secretRef && !secret) return unreadable(name, 'does not exist');
      const sink = sinkOf(spec, secret as Parameters<typeof sinkOf>[1]);
      const untilMs = clock.monotonic() + secretTrustMs;
      if (!('code' in sink)) this.#sinks.set(key, { sink, version, untilMs });
      return sink;
    } catch (error) {
      if (isForbidden(error)) return unreadable(name, 'may not be read');
      throw error;
    }
  }

  #test({ testId = '' }: ProviderView, delivered: boolean, answer: string): Tested {
    return { id: testId, at: formatTime(this.#deps.clock.now()), delivered, answer: shorten(answer, 1024) };
  }

  #forget(key: string): Result {
    this.#sinks.delete(key);
    this.#deps.healths.forget(key);
    return done;
  }
}

type UnusableSink = SinkProblem | { readonly code: 'SecretUnreadable' | 'Suspended'; readonly message: string };

const suspended: UnusableSink = {
  code: 'Suspended',
  message: 'spec.suspend is true, so nothing is sent; set it to false',
};

const unreadable = ({ namespace, name }: { namespace: string; name: string }, problem: string): UnusableSink => ({
  code: 'SecretUnreadable',
  message:
    `Secret ${name} ${problem}; create it, and let the ServiceAccount drawbridge-notify read it: a Role in namespace ${namespace} ` +
    `with the verb get on secrets, resourceNames [${name}], and a RoleBinding`,
});
