import { type AccessEvent, accessEvents } from '../../../src/api/notify/events.ts';
import {
  type NotificationProvider,
  notificationProviders,
  providerSecretType,
} from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import type { Condition, Resource } from '../../../src/api/object.ts';
import { configMaps, secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Answer, Message, Sink } from '../../../src/notify/sink.ts';
import { MemoryCluster } from '../binding/memory-cluster.ts';
import { seededRandom } from '../random.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { objectOf, resourceOf, subscriptionSpec, teamsSpec } from './objects.ts';
import { Replica, type ReplicaWorld } from './replica.ts';

export interface Sent {
  readonly sink: string;
  readonly message: Message;
}

/** Replicas of the feature in memory, with sinks that answer as the test says. */
export class NotifyStage implements ReplicaWorld {
  readonly clock = new SimulatedClock();
  readonly api = new MemoryCluster(this.clock);
  readonly random = seededRandom(1);
  readonly sent: Sent[] = [];
  /** By the first label of the host. Default: delivered. */
  readonly answers: Record<string, (message: Message, signal: AbortSignal) => Answer | Promise<Answer>> = {};
  readonly #replicas: Replica[] = [];

  step(): void {}

  latency(): number {
    return 1;
  }

  sink({ address }: Sink, message: Message, signal: AbortSignal): Promise<Answer> {
    const sink = address?.hostname.split('.')[0] ?? '';
    this.sent.push({ sink, message });
    return Promise.resolve(this.answers[sink]?.(message, signal) ?? { delivered: true, said: 'HTTP 200' });
  }

  /** Starts a replica that leads. */
  async lead(): Promise<Replica> {
    const replica = new Replica(this);
    this.#replicas.push(replica);
    await this.clock.advance(10);
    replica.lead();
    await this.clock.advance(100);
    return replica;
  }

  stop(): void {
    for (const replica of this.#replicas) if (replica.isAlive) replica.kill();
  }

  /** For what happens from now on. */
  provider(name: string, over: object = {}, namespace = 'tools', annotations: Record<string, string> = {}): void {
    const before = this.api.find(notificationProviders, { namespace, name });
    const spec = teamsSpec(name, { namespaces: ['*'], ...over });
    const metadata = { annotations, ...(before && { uid: before.metadata.uid }) };
    const object = objectOf(notificationProviders, namespace, name, spec, metadata);
    this.api.put(notificationProviders, { ...object, status: before?.status });
  }

  subscribe(provider: string, events: readonly AccessEvent[] = accessEvents, over: object = {}, from = 'tools'): void {
    const spec = subscriptionSpec(provider, events, { providerRef: { name: provider, namespace: from }, ...over });
    const name = `${from}-${provider}`;
    this.api.put(notificationSubscriptions, objectOf(notificationSubscriptions, 'payments', name, spec));
  }

  secret(name: string, type: string = providerSecretType, values: Readonly<Record<string, string>> = {}): void {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    this.api.put(secrets, {
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'tools', name }, type, data },
    });
  }

  request(name: string, over: { status?: object; spec?: object; metadata?: object } = {}): void {
    const resource = resourceOf('PodAccessRequest');
    const requester = { username: 'alice', uid: '1', groups: [], time: '2026-11-21T09:00:00Z' };
    const spec = { templateName: 'shell', requester, ...over.spec };
    const object = objectOf(resource, 'payments', name, spec, { uid: name, ...over.metadata });
    this.api.put(resource, { ...object, status: over.status });
  }

  putOutbox(shard: number, state: string): void {
    const metadata = { namespace: 'drawbridge-system', name: `drawbridge-notify-outbox-${shard}` };
    this.api.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { state } });
  }

  /** `event name`, in the order of messages; of a digest with commas. */
  told(sink?: string): string[] {
    return this.sent
      .filter((one) => sink === undefined || one.sink === sink)
      .map(({ message }) => message.facts.map(({ event, request }) => `${event} ${request.name}`).join(', '));
  }

  condition(name: string, resource: Resource = notificationProviders, namespace = 'tools'): Condition | undefined {
    const { status } = this.api.find(resource, { namespace, name }) ?? {};
    return (own(status, 'conditions') as Condition[] | undefined)?.find(({ type }) => type === 'Ready');
  }

  lastTest(name: string): NonNullable<NotificationProvider['status']>['lastTest'] {
    const { status } = this.api.find(notificationProviders, { namespace: 'tools', name }) ?? {};
    return (status as NotificationProvider['status'])?.lastTest;
  }

  get outboxWrites(): number {
    return this.api.calls.filter(({ verb, plural }) => verb === 'patch' && plural === configMaps.plural).length;
  }
}
