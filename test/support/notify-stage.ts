import assert from 'node:assert/strict';
import { type NotifyOptions, NotifyProcess } from '../../sandbox/notify-process.ts';
import { until } from '../../sandbox/wait.ts';
import {
  notificationProviders,
  type ProviderSpec,
  type ProviderStatus,
  providerSecretType,
} from '../../src/api/notify/notification-provider.ts';
import {
  type notificationSubscriptionKind,
  notificationSubscriptions,
} from '../../src/api/notify/notification-subscription.ts';
import { apiVersionOf, type Condition, type Resource } from '../../src/api/object.ts';
import type { ObjectOf } from '../../src/api/schema/kind.ts';
import { AccessStage, type AccessStageOptions } from './access-stage.ts';
import { NotificationReceiver, type Received } from './notification-receiver.ts';

type SubscriptionSpec = ObjectOf<typeof notificationSubscriptionKind>['spec'];

/** The stage of access, with the feature notify as another process, and a webhook receiver. */
export class NotifyStage {
  readonly access: AccessStage;
  readonly receiver: NotificationReceiver;
  #process: NotifyProcess;

  private constructor(access: AccessStage, receiver: NotificationReceiver, process: NotifyProcess) {
    this.access = access;
    this.receiver = receiver;
    this.#process = process;
  }

  static async open(options: AccessStageOptions & Pick<NotifyOptions, 'flags'> = {}): Promise<NotifyStage> {
    const { flags = [], ...rest } = options;
    const access = await AccessStage.open(rest);
    const receiver = await NotificationReceiver.open(access.plane.authority);
    return new NotifyStage(access, receiver, await startNotify(access, flags));
  }

  /** The process that runs now, or the last one. */
  get process(): NotifyProcess {
    return this.#process;
  }

  async start(...flags: string[]): Promise<void> {
    this.#process = await startNotify(this.access, flags);
  }

  async close(): Promise<void> {
    if (this.#process.running) await this.#process.stop();
    this.receiver.close();
    await this.access.close();
  }

  /** Creates the Secret of a provider, and the provider. */
  async provider(
    name: string,
    spec: Partial<ProviderSpec> = {},
    secret: Readonly<Record<string, string>> = { address: this.receiver.url, signingKey: this.receiver.signingKey },
  ): Promise<void> {
    const { namespace, plane } = this.access;
    await this.#create(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name },
      type: providerSecretType,
      stringData: secret,
    });
    const caBundle = plane.authority.certificate;
    await this.#object(notificationProviders, name, { type: 'Webhook', secretRef: { name }, caBundle, ...spec });
  }

  subscribe(name: string, spec: Pick<SubscriptionSpec, 'events'> & Partial<SubscriptionSpec>): Promise<void> {
    return this.#object(notificationSubscriptions, name, { providerRef: { name }, ...spec });
  }

  /** Resolves with the condition once it is there. */
  ready(resource: Resource, name: string, reason: string): Promise<Condition> {
    const url = `${this.#urlOf(resource)}/${name}`;
    let last: unknown;
    return until(
      `${resource.kind} ${name} to be ${reason}`,
      async () => {
        last = (await this.access.plane.probe(url)).body;
        const { conditions = [] } = (last as { status?: ProviderStatus }).status ?? {};
        return conditions.find((condition) => condition.type === 'Ready' && condition.reason === reason);
      },
      { timeoutMs: 30_000, everyMs: 50 },
    ).catch(async (error: Error) =>
      assert.fail(`${error.message}; it is ${JSON.stringify(last)}${await this.#process.log()}`),
    );
  }

  /** Resolves with the first event of the type about the request once the receiver has it. */
  async told(type: string, request: string, timeoutMs = 15_000): Promise<Received> {
    const isIt = ({ body }: Received): boolean =>
      body['type'] === `dev.drawbridge.access.${type}.v1` && String(body['subject']).endsWith(`/${request}`);
    return until(`the receiver to be told ${type} of ${request}`, () => this.receiver.received.find(isIt), {
      timeoutMs,
      everyMs: 20,
    }).catch(async (error: Error) =>
      assert.fail(`${error.message}; it was told ${this.receiver.types.join(', ')}\n${await this.#process.log()}`),
    );
  }

  /** The types of the events about the request so far, in order. */
  typesOf(request: string): string[] {
    return this.receiver.received
      .filter(({ body }) => String(body['subject']).endsWith(`/${request}`))
      .map(({ body }) => String(body['type']).slice('dev.drawbridge.access.'.length, -'.v1'.length));
  }

  #object(resource: Resource, name: string, spec: object): Promise<void> {
    const { kind } = resource;
    return this.#create(this.#urlOf(resource), { apiVersion: apiVersionOf(resource), kind, metadata: { name }, spec });
  }

  #urlOf({ group, version, plural }: Resource): string {
    return `/apis/${group}/${version}/namespaces/${this.access.namespace}/${plural}`;
  }

  async #create(url: string, object: object): Promise<void> {
    const { status, body } = await this.access.plane.call('POST', url, object);
    assert.equal(status, 201, JSON.stringify(body));
  }
}

const startNotify = ({ plane, namespace, server }: AccessStage, flags: readonly string[]): Promise<NotifyProcess> =>
  NotifyProcess.start(plane, {
    namespace: server.installation.namespace,
    secretNamespaces: [namespace],
    flags,
  });
