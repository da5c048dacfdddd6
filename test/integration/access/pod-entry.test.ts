import assert from 'node:assert/strict';
import type { AuditLine } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { connectSubresources } from '../../../src/audit/record.ts';
import { execRequest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';
import { enter, execs } from '../../support/pod-entries.ts';

describe('each of the five calls that enter a pod', () => {
  let stage: AccessStage;
  /** A user with RBAC permission to enter every pod of the namespace. */
  let eve: Person;
  let own: StoredRequest;
  let running: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    eve = await Person.of(stage.plane, 'eve', ['editors', 'on-call']);
    await stage.allowPodEntry(eve.name);
    const asked = [podRequest('own', { duration: '10m' }), execRequest('running', { duration: '10m' })];
    const [first, second] = await Promise.all(asked.map((one) => stage.createReady(stage.alice, one)));
    assert.ok(first && second);
    [own, running] = [first, second];
  });
  after(() => stage?.close());

  const podOf = ({ status }: StoredRequest): string => status?.podName ?? '';
  const uidOf = (pod: string): Promise<string> => stage.kubectl('get', 'pod', pod, '-o', 'jsonpath={.metadata.uid}');

  /** All lines about `pod` and `user` since `before`. */
  const lines = (pod: string, user: string): Promise<AuditLine[]> =>
    stage.audit((line) => line['pod'] === pod && line.who.user === user && line.event !== 'grant');

  for (const way of connectSubresources) {
    it(`${way} into a pod of a workload leaves one line`, async () => {
      const pod = podOf(running);
      const uid = await uidOf(pod);
      // The connection itself fails, because there is no kubelet.
      await enter[way](eve, stage.namespace, pod);
      const found = await until('the line', async () => lineOf(await lines(pod, 'eve'), way), { timeoutMs: 30_000 });
      assertLine(found, pod, uid);
      assert.equal(found.verdict, 'observed');
      assert.equal(found['request'], undefined, 'she used rights of her own');
      assert.equal((await lines(pod, 'eve')).filter(({ event }) => event === way).length, 1);
    });

    it(`${way} into an access pod leaves one line`, async () => {
      const pod = podOf(own);
      const uid = await uidOf(pod);
      assert.equal((await enter[way](eve, stage.namespace, pod)).status, 403);
      const found = lineOf(await lines(pod, 'eve'), way);
      assert.ok(found);
      assertLine(found, pod, uid);
      assert.deepEqual([found.verdict, found['code'], found['request']], ['denied', 'NoGrant', 'own']);
      assert.equal((await lines(pod, 'eve')).filter(({ event }) => event === way).length, 1);
    });
  }

  for (const [title, request, verdict] of [
    ['a new pod', () => own, 'allowed'],
    ['a running pod', () => running, 'observed'],
  ] as const) {
    it(`records the request whose grant the requester uses, for ${title}`, async () => {
      const pod = podOf(request());
      await stage.alice.kubectl(['exec', '-n', stage.namespace, pod, '--', 'true']);
      const found = await until('the line', async () => lineOf(await lines(pod, 'alice'), 'exec'), {
        timeoutMs: 30_000,
      });
      assert.deepEqual([found.verdict, found['request']], [verdict, request().metadata.name]);
    });
  }

  for (const [how, exec] of Object.entries(execs)) {
    it(`exec by ${how} leaves the same line, for a pod of a workload and for an access pod`, async () => {
      for (const [request, verdict] of [
        [running, 'observed'],
        [own, 'denied'],
      ] as const) {
        const pod = podOf(request);
        const entries = async (): Promise<AuditLine[]> =>
          (await lines(pod, 'eve')).filter(({ event }) => event === 'exec');
        const before = (await entries()).length;
        await exec(eve, stage.namespace, pod);
        const [line, ...others] = await until(
          'the line',
          async () => {
            const found = (await entries()).slice(before);
            return found.length > 0 && found;
          },
          { timeoutMs: 30_000 },
        );
        assert.deepEqual([line?.verdict, others], [verdict, []]);
        assertLine(line as AuditLine, pod, await uidOf(pod));
      }
    });
  }

  it('dates the Event of a repeated entry by the last entry, although the server writes it later', async function () {
    this.timeout(60_000);
    const pod = podOf(running);
    const command = ['exec', '-n', stage.namespace, pod, '--', 'true'];
    await stage.alice.kubectl(command);
    await stage.alice.kubectl(command);
    const url = `/apis/events.k8s.io/v1/namespaces/${stage.namespace}/events?fieldSelector=reason=PodExec,regarding.name=${pod}`;
    const series = await until(
      'the Event with its repetitions',
      async () => {
        const { items } = (await stage.plane.probe(url)).body as {
          items: { note: string; series?: { lastObservedTime: string } }[];
        };
        return items.find(({ note }) => note.startsWith('alice '))?.series;
      },
      { timeoutMs: 30_000 },
    );
    const entries = (await lines(pod, 'alice')).filter(({ event }) => event === 'exec');
    const lastMs = Math.max(...entries.map(({ time }) => Date.parse(String(time))));
    assert.ok(Math.abs(Date.parse(series.lastObservedTime) - lastMs) < 1_000, series.lastObservedTime);
  });

  it('leaves no line with commands, ports, or paths', async () => {
    const entries = await stage.audit(({ event }) => (connectSubresources as readonly string[]).includes(event));
    assert.ok(entries.length >= 10);
    assert.doesNotMatch(JSON.stringify(entries.map(({ reviewUid: _, ...line }) => line)), /hunter2|"command"/);
  });

  const lineOf = (found: AuditLine[], way: string): AuditLine | undefined => found.find(({ event }) => event === way);

  function assertLine({ who, what, ...line }: AuditLine, pod: string, uid: string): void {
    assert.equal(who.user, 'eve');
    assert.deepEqual(who.groups, ['editors', 'on-call', 'system:authenticated']);
    assert.deepEqual([what['uid' as 'name'], line['pod']], [uid, pod]);
    assert.equal(what.operation, line.event === 'ephemeralcontainers' ? 'UPDATE' : 'CONNECT');
  }
});
