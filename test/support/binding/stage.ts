import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { AuditCall, AuditFilter } from '../../../sandbox/audit-log.ts';
import { Backend, type ExportOptions } from '../../../sandbox/binding/backend.ts';
import {
  type FixtureKind,
  type FixtureKinds,
  fixtureKinds,
  fixtureObject,
} from '../../../sandbox/binding/fixture-kinds.ts';
import { binder, Provider } from '../../../sandbox/binding/provider.ts';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import type { HttpScript } from '../../../sandbox/http-script.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import { providerUidAnnotation } from '../../../src/api/binding/names.ts';
import type { KubeObject, ObjectName } from '../../../src/api/object.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import type { InformerScope, IsolationName } from '../../../src/binding/stores/provider-stores.ts';
import { Consumer, getIfThere, refusals } from './consumer.ts';
import { bindingPlane } from './planes.ts';

export interface StageOptions {
  /** Default Prefixed. */
  readonly isolation?: IsolationName;
  /** Default Namespaced. */
  readonly informerScope?: InformerScope;
  /** Consumers, each on a plane of its own. Default 1. */
  readonly consumers?: 1 | 2;
  /** Plurals of the core group that konnectors may be asked to claim. Default none. */
  readonly claims?: readonly string[];
  /** Puts a proxy between the konnectors and the provider: `true` for one whose connections can be broken, or a script for calls. */
  readonly proxy?: true | HttpScript;
}

export interface BindOptions extends Omit<ExportOptions, 'name' | 'kinds'> {
  /** Default: the first consumer. */
  readonly side?: Side;
  /** Name of the binding. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** One consumer, and its backend in the provider. */
export interface Side {
  readonly consumer: Consumer;
  readonly backend: Backend;
  /** Namespace of the consumer for the objects of this test only. */
  readonly namespace: string;
}

const patienceMs = 30_000;

/** A provider and its consumers on real planes, with two kinds of this stage only. Tests start the konnectors. */
export class BindingStage {
  readonly id: string;
  readonly provider: Provider;
  readonly kinds: FixtureKinds;
  readonly sides: readonly Side[];
  readonly #proxy: FaultProxy | undefined;
  readonly #isolation: IsolationName;
  readonly #providerMark: number;
  readonly #extraNamespaces: string[] = [];

  private constructor(parts: Parts) {
    const { id, provider, kinds, sides, isolation, proxy } = parts;
    this.id = id;
    this.provider = provider;
    this.kinds = kinds;
    this.sides = sides;
    this.#proxy = proxy;
    this.#isolation = isolation;
    this.#providerMark = provider.plane.auditLog.mark();
  }

  static async open(options: StageOptions = {}): Promise<BindingStage> {
    const { isolation = 'Prefixed', informerScope = 'Namespaced', consumers = 1, claims = [], proxy: way } = options;
    const id = randomBytes(3).toString('hex');
    const roles = (['consumer', 'second-consumer'] as const).slice(0, consumers);
    const [provider, ...planes] = await Promise.all([
      bindingPlane('provider').then((plane) => Provider.open(plane)),
      ...roles.map((role) => bindingPlane(role)),
    ]);
    const proxy = way && (await provider.plane.proxy(way === true ? undefined : way));
    const kinds = fixtureKinds(`kitchen-${id}.example`, isolation);
    const bound = [kinds.kettles, kinds.ovens];
    await provider.install(...bound.map(({ crd }) => crd));
    const sides = await Promise.all(
      planes.map(async (plane, index): Promise<Side> => {
        const own = `${id}-${index + 1}`;
        const place = { clusterNamespace: `kube-bind-${own}`, isolation, informerScope };
        const backendOptions = proxy ? { ...place, server: proxy.server } : place;
        const [consumer, backend] = await Promise.all([
          Consumer.open(plane, own, { kinds: bound, claims }),
          Backend.open(provider, backendOptions),
        ]);
        return { consumer, backend, namespace: await consumer.namespace(`team-${own}`) };
      }),
    );
    return new BindingStage({ id, provider, kinds, sides, isolation, proxy });
  }

  /** The first consumer, usually the only one. */
  get side(): Side {
    const [side] = this.sides;
    assert.ok(side);
    return side;
  }

  /** The proxy between konnectors and provider, if the stage was opened with one. */
  get proxy(): FaultProxy {
    assert.ok(this.#proxy);
    return this.#proxy;
  }

  /** Exports kinds under a name, connects and binds them, and waits until the binding is ready. The konnector must run. */
  async bind(name: string, kinds: readonly FixtureKind[], options: BindOptions = {}): Promise<string> {
    const { side = this.side, annotations, ...exported } = options;
    const { backend, consumer } = side;
    await backend.export({ ...exported, name, kinds });
    const secret = await consumer.connect(backend.identity.kubeconfig);
    await consumer.bind(name, secret, annotations ? { annotations } : {});
    await consumer.whenCondition(name, 'Ready');
    await Promise.all(kinds.map(({ crd }) => whenServed(consumer.plane, crd.metadata.name)));
    return secret;
  }

  async create(kind: FixtureKind, name: ObjectName, spec?: Readonly<Record<string, unknown>>, side: Side = this.side) {
    await whenServed(side.consumer.plane, kind.crd.metadata.name);
    return side.consumer.client.create(kind.inConsumer, fixtureObject(kind, name, spec));
  }

  /** The name of the copy in the provider; the backend must have answered its namespace. */
  copyName(kind: FixtureKind, { namespace, name }: ObjectName, { backend }: Side = this.side): ObjectName {
    if (namespace !== undefined) return { namespace: backend.serviceNamespaceOf(namespace), name };
    if (kind.inProvider.namespaced) return { namespace: backend.clusterNamespace, name };
    return { name: this.#isolation === 'Prefixed' ? `${backend.clusterNamespace}-${name}` : name };
  }

  copy(kind: FixtureKind, name: ObjectName, side: Side = this.side): Promise<KubeObject | undefined> {
    return getIfThere(this.provider.client, kind.inProvider, this.copyName(kind, name, side));
  }

  /** Resolves to the copy once `matches` returns true. */
  whenCopy(
    kind: FixtureKind,
    name: ObjectName,
    matches: (copy: KubeObject) => boolean = () => true,
    side: Side = this.side,
  ): Promise<KubeObject> {
    return this.#when(`the copy of ${kind.inConsumer.kind} ${name.name}`, side, async () => {
      const copy = await this.copy(kind, name, side);
      return copy && matches(copy) ? copy : undefined;
    });
  }

  async whenCopyGone(kind: FixtureKind, name: ObjectName, side: Side = this.side): Promise<void> {
    const gone = async (): Promise<boolean> => (await this.copy(kind, name, side)) === undefined;
    await this.#when(`the copy of ${kind.inConsumer.kind} ${name.name} to be gone`, side, gone);
  }

  /** Resolves to the consumer's object once `matches` returns true. */
  whenObject(
    kind: FixtureKind,
    name: ObjectName,
    matches: (object: KubeObject) => boolean,
    side: Side = this.side,
  ): Promise<KubeObject> {
    return this.#when(`${kind.inConsumer.kind} ${name.name}`, side, async () => {
      const object = await side.consumer.get(kind.inConsumer, name);
      return object && matches(object) ? object : undefined;
    });
  }

  /** Resolves to the consumer's object once the konnector has annotated it with its copy. */
  whenSynced(kind: FixtureKind, name: ObjectName, side: Side = this.side): Promise<KubeObject> {
    const isSynced = ({ metadata }: KubeObject): boolean => metadata.annotations?.[providerUidAnnotation] !== undefined;
    return this.whenObject(kind, name, isSynced, side);
  }

  async whenObjectGone(kind: FixtureKind, name: ObjectName, side: Side = this.side): Promise<void> {
    const gone = async (): Promise<boolean> => (await side.consumer.get(kind.inConsumer, name)) === undefined;
    await this.#when(`${kind.inConsumer.kind} ${name.name} to be gone`, side, gone);
  }

  /** Writes the status of a copy like a controller of the provider. */
  async report(kind: FixtureKind, name: ObjectName, status: object, side: Side = this.side): Promise<void> {
    const where = this.copyName(kind, name, side);
    await this.provider.client.mergePatch(kind.inProvider, where, { status }, { subresource: 'status' });
  }

  /** Namespaces of the consumers that the stage deletes when it closes. */
  alsoRemove(...namespaces: readonly string[]): void {
    this.#extraNamespaces.push(...namespaces);
  }

  /** Calls of konnectors that the provider denied for lack of permissions. */
  providerRefusals(side: Side = this.side): string[] {
    return refusals(this.provider.plane, userOf(side), this.#providerMark);
  }

  /** All calls of konnectors to the provider. Calls whose token is not accepted have no user. */
  calls(filter: AuditFilter = {}, side: Side = this.side): AuditCall[] {
    const { auditLog } = this.provider.plane;
    const calls = auditLog.calls({ since: this.#providerMark, ...filter });
    return calls.filter(({ user, namespace }) => user === userOf(side) || (user === '' && namespace !== ''));
  }

  /** Writes of a konnector to copies of a kind, in order. */
  writes({ inProvider: { plural } }: FixtureKind, side: Side = this.side): AuditCall[] {
    return this.calls(
      { user: userOf(side), verbs: ['create', 'update', 'patch', 'delete'], resources: [plural] },
      side,
    );
  }

  async close(): Promise<void> {
    const resources = Object.values(this.kinds).map(({ inConsumer }) => inConsumer);
    for (const { consumer, namespace } of this.sides) {
      await consumer.close(resources, [namespace, ...this.#extraNamespaces]);
    }
    const crds = Object.values(this.kinds).map(({ crd }) => crd.metadata.name);
    await this.provider.remove(customResourceDefinitions, ...crds);
    for (const { backend } of this.sides) await backend.close();
    await this.#proxy?.close();
    await this.provider.close();
  }

  async #when<T>(what: string, side: Side, check: () => Promise<T | undefined | false>): Promise<T> {
    try {
      return await until(what, check, { timeoutMs: patienceMs });
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await side.consumer.konnector.log()}`);
    }
  }
}

interface Parts extends Pick<BindingStage, 'id' | 'provider' | 'kinds' | 'sides'> {
  readonly isolation: IsolationName;
  readonly proxy: FaultProxy | undefined;
}

const userOf = ({ backend }: Side): string => `system:serviceaccount:${backend.clusterNamespace}:${binder}`;
