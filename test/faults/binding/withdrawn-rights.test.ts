import assert from 'node:assert/strict';
import { clusterRoles } from '../../../sandbox/binding/resources.ts';
import { until } from '../../../sandbox/wait.ts';
import { bindGroup, keepKubeconfigAnnotation } from '../../../src/api/binding/names.ts';
import type { ObjectName, Resource } from '../../../src/api/object.ts';
import { events, roleBindings, roles, secrets } from '../../../src/api/resources.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { Client } from '../../../src/kube/client.ts';
import { BindingStage } from '../../support/binding/stage.ts';

const toldWithinMs = 10_000;
const clearWithinMs = 5_000;
const binding = 'kitchen';

/** The permissions of one object of RBAC, which a test empties and restores. */
interface Grant {
  readonly title: string;
  /** The kinds that the condition names, and no others. */
  readonly refused: () => readonly string[];
  readonly side: 'consumer' | 'provider';
  /** A Role or ClusterRole whose `rules`, or a RoleBinding whose `subjects`, the test removes. */
  readonly object: () => readonly [Resource, ObjectName, 'rules' | 'subjects'];
  /** What is left of the list. Default nothing. */
  readonly keep?: (item: object) => boolean;
  /** Watches that the object allows. Default: one for each refused kind. */
  readonly watches?: number;
  /** A watch that the object allows. */
  readonly probe: () => { readonly resource: string; readonly group: string; readonly namespace: string };
}

describe('permissions that are withdrawn while no object changes', () => {
  let stage: BindingStage;
  const kettles = () => stage.kinds.kettles;
  const crd = (): string => kettles().crd.metadata.name;
  const group = (): string => kettles().inConsumer.group;
  const name = (): ObjectName => ({ namespace: stage.side.namespace, name: 'kept' });
  const cluster = (): string => stage.side.backend.clusterNamespace;
  const service = (): string => stage.side.backend.serviceNamespaceOf(stage.side.namespace);
  const konnectorRole = (): string => `konnector-${stage.id}-1`;

  before(async function () {
    this.timeout(180_000);
    stage = await BindingStage.open({ claims: ['secrets'] });
    const { backend, consumer } = stage.side;
    await consumer.start();
    const labelSelector = { matchLabels: { 'kitchen.example/share': 'true' } };
    const claim = { group: '', resource: 'secrets', selector: { labelSelector } };
    await backend.export({ name: binding, kinds: [kettles()], claims: [claim] });
    await consumer.bind(binding, await consumer.connect(backend.identity.kubeconfig));
    await consumer.whenCondition(binding, 'Ready');
    await stage.create(kettles(), name());
    await stage.whenSynced(kettles(), name());
    await report('first');
    const metadata = { ...name(), labels: { 'kitchen.example/share': 'true' } };
    await consumer.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata });
    const copied = () => stage.provider.client.get(secrets, { namespace: service(), name: 'kept' }).catch(() => false);
    await until('the copy of the claimed Secret', async () => Boolean(await copied()), { timeoutMs: 30_000 });
  });
  after(async () => stage.close());

  const report = async (result: string): Promise<void> => {
    await stage.report(kettles(), name(), { result });
    await stage.whenObject(kettles(), name(), ({ status }) => own(status, 'result') === result);
  };

  const grants: Grant[] = [
    {
      title: 'of the provider on the bound kind',
      refused: () => [crd()],
      side: 'provider',
      object: () => [clusterRoles, { name: `kube-binder-resources-${cluster()}-${binding}` }, 'rules'],
      probe: () => ({ resource: kettles().inProvider.plural, group: group(), namespace: service() }),
    },
    {
      title: 'of the provider on the kinds of its cluster namespace',
      refused: () =>
        [
          'apiserviceexportrequests',
          'apiserviceexports',
          'apiservicenamespaces',
          'boundschemas',
          'clusterbindings',
        ].map((plural) => `${plural}.${bindGroup}`),
      side: 'provider',
      object: () => [roleBindings, { namespace: cluster(), name: 'kube-binder' }, 'subjects'],
      // And that of the Secret with the kubeconfig, which condition SecretValid of the ClusterBinding reports.
      watches: 6,
      probe: () => ({ resource: 'apiserviceexports', group: bindGroup, namespace: cluster() }),
    },
    {
      title: 'of the provider on a claim only',
      refused: () => ['secrets'],
      side: 'provider',
      object: () => [roles, { namespace: service(), name: `kube-binder-claims-${binding}` }, 'rules'],
      probe: () => ({ resource: 'secrets', group: '', namespace: service() }),
    },
    {
      title: 'of this cluster on the bound kind',
      refused: () => [crd()],
      side: 'consumer',
      object: () => [clusterRoles, { name: konnectorRole() }, 'rules'],
      keep: (rule) => (own(rule, 'apiGroups') as string[])[0] !== group(),
      probe: () => ({ resource: kettles().inConsumer.plural, group: group(), namespace: '' }),
    },
    {
      title: 'of this cluster on a claim only',
      refused: () => ['secrets'],
      side: 'consumer',
      object: () => [clusterRoles, { name: konnectorRole() }, 'rules'],
      keep: (rule) => !(own(rule, 'resources') as string[]).includes('secrets'),
      // That of the selected Secrets, and that of the copies.
      watches: 2,
      probe: () => ({ resource: 'secrets', group: '', namespace: '' }),
    },
  ];

  const clientOf = (side: Grant['side']): Client =>
    side === 'provider' ? stage.provider.client : stage.side.consumer.client;
  const userOf = (side: Grant['side']): string =>
    side === 'provider' ? `system:serviceaccount:${cluster()}:kube-binder` : stage.side.consumer.konnectorUser;

  /** Resolves when the API server answers as `allowed`; the konnector cannot know earlier. */
  const whenAllowed = ({ side, probe }: Grant, allowed: boolean): Promise<unknown> => {
    const question = { user: userOf(side), verb: 'watch', ...probe() };
    const asked = async () => (await clientOf(side).isAllowed(question)) === allowed;
    return until(`${question.resource} to be ${allowed ? '' : 'not '}allowed`, asked, { timeoutMs: 15_000 });
  };

  const logged = async (what: RegExp, since: number): Promise<string[]> =>
    (await stage.side.consumer.konnector.log())
      .slice(since)
      .split('\n')
      .filter((line) => what.test(line));

  const refusalsCounted = async (resource: string): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${stage.side.consumer.konnector.metricsPort}/metrics`);
    const series = (await answer.text())
      .split('\n')
      .filter((line) => line.startsWith('drawbridge_watch_refusals_total{') && line.includes(`resource="${resource}"`));
    return series.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  };

  const refusalEvents = async (since: number): Promise<string[]> =>
    (await stage.side.consumer.client.list(events, { namespace: 'default' })).items
      .filter((event) => own(event, 'reason') === 'WatchRefused' && own(own(event, 'regarding'), 'name') === binding)
      .filter(({ metadata }) => Date.parse(String(metadata.creationTimestamp)) >= since - 1_000)
      .map((event) => String(own(event, 'note')));

  for (const grant of grants) {
    describe(grant.title, () => {
      let list: unknown;
      const sinceMs = { log: 0, wall: 0, counted: 0 };

      it(`are told within ${toldWithinMs / 1000} s by the condition, an Event, the metric, and one log line a watch`, async function () {
        this.timeout(60_000);
        const { consumer } = stage.side;
        const [resource, where, field] = grant.object();
        sinceMs.log = (await consumer.konnector.log()).length;
        sinceMs.wall = Date.now();
        const [first = ''] = grant.refused();
        sinceMs.counted = await refusalsCounted(first);
        list = own(await clientOf(grant.side).get(resource, where), field);
        const kept = (list as object[]).filter((item) => grant.keep?.(item) ?? false);
        await clientOf(grant.side).mergePatch(resource, where, { [field]: kept });
        await whenAllowed(grant, false);
        const beganMs = performance.now();
        const message = new RegExp(`watch ${[...grant.refused()].sort().join(', ')}( \\(403\\)|,)`);
        const reason = 'WatchRefused';
        await consumer.whenCondition(binding, 'Connected', 'False', { reason, message, timeoutMs: toldWithinMs });
        await consumer.whenCondition(binding, 'Ready', 'False', { reason });
        assert.ok((await refusalsCounted(first)) > sinceMs.counted);
        await until('the Event', async () => (await refusalEvents(sinceMs.wall)).some((note) => message.test(note)), {
          timeoutMs: toldWithinMs,
        });
        const tookMs = performance.now() - beganMs;
        console.log(`      told after ${Math.round(tookMs)} ms`);
        assert.ok(tookMs <= toldWithinMs, `${tookMs} ms`);
        const { watches = grant.refused().length } = grant;
        const lines = async () => (await logged(/no longer allowed/, sinceMs.log)).length >= watches;
        await until(`${watches} log lines`, lines, { timeoutMs: toldWithinMs - tookMs });
      });

      it(`are in force again within ${clearWithinMs / 1000} s of their return, and nothing is missed`, async function () {
        this.timeout(60_000);
        const { consumer } = stage.side;
        const [resource, where, field] = grant.object();
        await stage.report(kettles(), name(), { result: grant.title });
        await clientOf(grant.side).mergePatch(resource, where, { [field]: list });
        await whenAllowed(grant, true);
        const beganMs = performance.now();
        const took = (): number => performance.now() - beganMs;
        await consumer.whenCondition(binding, 'Connected', 'True', { timeoutMs: clearWithinMs });
        await consumer.whenCondition(binding, 'Ready', 'True', { timeoutMs: clearWithinMs });
        await stage.whenObject(kettles(), name(), ({ status }) => own(status, 'result') === grant.title);
        console.log(`      clear after ${Math.round(took())} ms`);
        assert.ok(took() <= clearWithinMs, `${took()} ms`);
        const { watches = grant.refused().length } = grant;
        assert.equal((await logged(/no longer allowed/, sinceMs.log)).length, watches, 'not logged again');
      });
    });
  }

  it(`are told within ${toldWithinMs / 1000} s if the token of the ServiceAccount is revoked`, async function () {
    this.timeout(60_000);
    const { backend, consumer } = stage.side;
    const since = (await consumer.konnector.log()).length;
    await backend.identity.revoke(backend.identity.tokenSecret);
    // The API server accepts a revoked token for up to ten more seconds.
    const refused = () => stage.calls().some(({ code }) => code === 401);
    await until('the first 401', refused, { timeoutMs: 10_000 + toldWithinMs });
    const beganMs = performance.now();
    const [reason, message] = ['WatchRefused', /401/];
    const toldIn = { reason, message, timeoutMs: toldWithinMs };
    await consumer.whenCondition(binding, 'Connected', 'False', toldIn);
    await consumer.whenCondition(binding, 'Ready', 'False');
    console.log(`      told after ${Math.round(performance.now() - beganMs)} ms`);
    assert.ok((await logged(/no longer allowed/, since)).length > 0);
  });

  it(`are in force again within ${clearWithinMs / 1000} s of a new kubeconfig, and nothing is missed`, async function () {
    this.timeout(60_000);
    const { backend, consumer } = stage.side;
    await stage.report(kettles(), name(), { result: 'new token' });
    await backend.identity.rotate();
    const annotations = { [keepKubeconfigAnnotation]: 'true' };
    await consumer.connect(backend.identity.kubeconfig, { annotations });
    const beganMs = performance.now();
    await consumer.whenCondition(binding, 'Connected', 'True', { timeoutMs: clearWithinMs });
    await consumer.whenCondition(binding, 'Ready', 'True', { timeoutMs: clearWithinMs });
    await stage.whenObject(kettles(), name(), ({ status }) => own(status, 'result') === 'new token');
    const tookMs = performance.now() - beganMs;
    console.log(`      clear after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs <= clearWithinMs, `${tookMs} ms`);
  });
});
