import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { connectSubresources } from '../../../src/audit/record.ts';
import { podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';
import { enter, execs } from '../../support/pod-entries.ts';

describe('only the subjects of its grant enter an access pod', () => {
  let stage: AccessStage;
  let request: StoredRequest;
  let pod: string;
  /** Users with RBAC permission to enter every pod of the namespace; dora is in the break-glass group. */
  let eve: Person;
  let dora: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open({ flags: ['--break-glass-group=firefighters'] });
    eve = await Person.of(stage.plane, 'eve', ['editors']);
    dora = await Person.of(stage.plane, 'dora', ['firefighters']);
    for (const { name } of [eve, dora]) await stage.allowPodEntry(name);
    request = await stage.createReady(stage.alice, podRequest('own', { duration: '10m' }));
    pod = request.status?.podName ?? '';
  });
  after(() => stage?.close());

  const echo = (who: Person, name: string) =>
    who.kubectl(['exec', '-n', stage.namespace, name, '--', 'echo', 'in'], { reject: false });

  it('the requester enters', async () => {
    assert.equal((await echo(stage.alice, pod)).stdout, 'in\n');
  });

  for (const way of connectSubresources) {
    it(`a user with the role edit is denied, by ${way}`, async () => {
      assert.equal(await eve.mayExec(stage.namespace, pod), true, 'RBAC would let her');
      const { status, body } = await enter[way](eve, stage.namespace, pod);
      assert.equal(status, 403, JSON.stringify(body));
      assert.match(
        (body as { message: string }).message,
        /NoGrant: .* create a request of your own: a PodAccessRequest with spec\.templateName payments-shell/,
      );
    });
  }

  for (const [how, exec] of Object.entries(execs)) {
    it(`by ${how} of exec, only the requester enters`, async () => {
      const { status, body } = await exec(eve, stage.namespace, pod);
      assert.equal(status, 403, JSON.stringify(body));
      assert.match(JSON.stringify(body), /NoGrant: .* create a request of your own/);
      const own = await exec(stage.alice, stage.namespace, pod);
      // After admission, the API server would upgrade the POST to SPDY.
      assert.equal(own.status, how === 'a POST' ? 400 : 101, JSON.stringify(own.body));
      if (own.status === 101) assert.match(String(own.body), /in\n/);
    });
  }

  it('an administrator is denied, with the reason', async () => {
    const { code, stderr } = await stage.plane.kubectl(['exec', '-n', stage.namespace, pod, '--', 'true'], {
      reject: false,
    });
    assert.notEqual(code, 0);
    assert.match(stderr, /NoGrant: pod own-\w+-access belongs to PodAccessRequest own; only its subjects may connect/);
  });

  it('the break-glass group enters, with an audit line and a Warning Event', async () => {
    assert.equal((await echo(dora, pod)).stdout, 'in\n');
    const line = await stage.auditLine('break-glass', ({ who, event }) => who.user === 'dora' && event === 'exec');
    assert.deepEqual([line.verdict, line['code'], line['request'], line['pod']], ['allowed', 'BreakGlass', 'own', pod]);
    const noted = async (): Promise<string | undefined> => {
      const { items } = JSON.parse(await stage.kubectl('get', 'events.events.k8s.io', '-o', 'json')) as {
        items: { type: string; reason: string; note: string; regarding: { name: string } }[];
      };
      return items.find(({ type, reason, regarding }) => {
        return type === 'Warning' && reason === 'BreakGlass' && regarding.name === pod;
      })?.note;
    };
    assert.match(await until('the Event', noted, { timeoutMs: 30_000, everyMs: 200 }), /^dora ran a command in/);
  });

  it('RBAC alone decides about foreign pods with such a name', async () => {
    const spec = { containers: [{ name: 'app', image: 'busybox:1.37' }] };
    await stage.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'shell-access' }, spec });
    await stage.kubectl('wait', 'pod/shell-access', '--for=condition=Ready', '--timeout=30s');
    assert.equal((await echo(eve, 'shell-access')).stdout, 'in\n');
    assert.equal((await echo(stage.alice, 'shell-access')).code, 1, 'she has no rights on it');
  });

  it('every user gets 404 for a pod of that name that does not exist', async () => {
    const { status } = await enter.exec(eve, stage.namespace, 'no-access');
    assert.equal(status, 404);
  });

  it('every user is denied once the request is revoked', async () => {
    const { name } = request.metadata;
    await stage.alice.call('PATCH', stage.urlOf(request.kind, name), { spec: { revoked: true } });
    await stage.closed(request);
    assert.notEqual((await echo(stage.alice, pod)).code, 0);
  });
});
