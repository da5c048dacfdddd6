import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

describe('a request that ended', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
  });
  after(() => stage?.close());

  /** As `kubectl create` of a manifest with `metadata.generateName`, and as ozctl does it. */
  const generated = ({ metadata: { name }, ...manifest }: Manifest): Manifest => ({
    ...manifest,
    metadata: { generateName: `${name}-` },
  });
  const alice = (...args: string[]) => stage.alice.kubectl([...args, '-n', stage.namespace], { reject: false });
  const ended = (request: StoredRequest): Promise<StoredRequest> =>
    stage.requestUntil('to have ended', request, (now) => now.status?.ended !== undefined);
  /** The cells of a request as `kubectl get -o wide` prints them. */
  const row = async (kind: string, name: string): Promise<string[]> => {
    const { stdout } = await alice('get', kind, name, '-o', 'wide', '--no-headers');
    return stdout.trim().split(/ {2,}/);
  };
  /** How long a request stays after its end, as kubectl prints it. */
  const keptMs = async (kind: string, name: string): Promise<number> => {
    const { stdout } = await alice('get', kind, name, '-o', 'jsonpath={.status.ended.at} {.status.ended.keptUntil}');
    const [at = '', untilText = ''] = stdout.split(' ');
    return Date.parse(untilText) - Date.parse(at);
  };

  describe('and whose name was generated', () => {
    let request: StoredRequest;

    before(async () => {
      const manifest = generated(podRequest('look-later', { duration: '6s', reason: 'INC-42 payments fail' }));
      request = await ended(await stage.createReady(stage.alice, manifest));
    });

    it('is printed with how, when, and why it ended, for 24 h', async () => {
      const { name } = request.metadata;
      const { expiresAt = '' } = request.status?.grant ?? {};
      const [, template, pod, ready, how, who, end, , reason, why] = await row('par', name);
      assert.deepEqual(
        [template, pod, ready, how, who, end, reason, why],
        [
          'payments-shell',
          request.status?.podName,
          'false',
          'Expired',
          'alice',
          expiresAt,
          'INC-42 payments fail',
          `access ended at ${expiresAt}: the granted time has passed`,
        ],
      );
      const { stdout } = await alice('describe', 'par', name);
      assert.match(stdout, new RegExp(`access ended at ${expiresAt}: the granted time has passed`));
      assert.doesNotMatch(stdout, /access is open|access revoked|Access Message: +kubectl exec/);
      assert.equal(await keptMs('par', name), 24 * 3_600_000);
    });

    it('has no objects any more', async () => {
      const childless = async (): Promise<boolean> => (await stage.children(request.metadata.uid)).length === 0;
      // The server records the end once it has deleted the Pod, which the kubelet removes later.
      await until('the objects to be gone', childless, { timeoutMs: 20_000 });
      assert.equal(await stage.alice.mayExec(stage.namespace, request.status?.podName ?? ''), false);
    });

    it('cannot be revoked again, with the command that removes it', async () => {
      const { name } = request.metadata;
      const { stderr } = await alice('patch', 'par', name, '--type=merge', '-p', '{"spec":{"revoked":true}}');
      assert.match(stderr, /WrongState: .*the request ended at \S+ \(Expired\), so there is nothing to revoke/);
      assert.match(stderr, new RegExp(`kubectl delete podaccessrequest ${name} -n ${stage.namespace}`));
    });

    it('cannot be extended or claimed', async () => {
      const { name } = request.metadata;
      const extend = await alice('patch', 'par', name, '--type=merge', '-p', '{"spec":{"extensions":[{"by":"5m"}]}}');
      assert.match(extend.stderr, /WrongState: the access is not open/);
      const claim = await alice('patch', 'par', name, '--type=merge', '-p', '{"spec":{"claimed":true}}');
      assert.match(claim.stderr, /WrongState: /);
    });

    it('cannot have its end changed or removed, even by an administrator without the policies', async () => {
      const { name } = request.metadata;
      for (const status of [{ ended: null }, { ended: { keptUntil: '2099-01-01T00:00:00Z' } }]) {
        const args = ['patch', 'par', name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
        const { stderr } = await stage.plane.kubectl(['-n', stage.namespace, ...args], { reject: false });
        assert.match(stderr, /StatusReserved|status\.ended is immutable/);
      }
    });

    it('costs a new leader no call, if it reads its keys within a second', async () => {
      const { name } = request.metadata;
      const callsOfNewLeader = async () => {
        const since = stage.plane.auditLog.mark();
        await stage.restart();
        await stage.runMarkerGrant();
        const user = stage.server.installation.serverUser;
        return stage.plane.auditLog.calls({ user, since }).filter((call) => call.name.startsWith(name));
      };
      let calls = await callsOfNewLeader();
      // A leader without keys closes first and verifies later, as on a busy machine.
      for (let again = 0; again < 3 && calls.length > 0; again += 1) calls = await callsOfNewLeader();
      assert.deepEqual(calls, []);
      assert.equal((await stage.read(request.kind, name))?.status?.ended?.how, 'Expired');
    });

    it('goes when its requester deletes it', async () => {
      await alice('delete', 'par', request.metadata.name, '--timeout=20s');
      assert.equal(await stage.read(request.kind, request.metadata.name), undefined);
    });
  });

  it('stays with its denial, if its name was generated', async () => {
    const manifest = generated(execRequest('refused', { targetPod: 'nobody', duration: '5m' }));
    const request = await ended(await stage.createOk(stage.alice, manifest));
    const { how, reason } = request.status?.ended ?? {};
    assert.deepEqual([how, reason], ['Denied', 'InvalidTargetPod']);
    const { name } = request.metadata;
    const cells = await row('ear', name);
    assert.deepEqual(cells.slice(2, 5), ['false', 'Denied', 'alice']);
    assert.match(cells.at(-1) ?? '', /^InvalidTargetPod: /);
    assert.equal(await keptMs('ear', name), 24 * 3_600_000);
  });

  it('and that its user named goes, so that yesterday’s manifest opens access again', async () => {
    const manifest = podRequest('yesterday', { duration: '6s' });
    await stage.gone(await stage.createReady(stage.alice, manifest));
    const input = stringify(manifest);
    const apply = ['apply', '-n', stage.namespace, '-f', '-'];
    const { stdout } = await stage.alice.kubectl(apply, { input });
    assert.match(stdout, /yesterday created/);
    await stage.requestUntil(
      'to be ready',
      { kind: manifest.kind, metadata: { name: 'yesterday', uid: '' } },
      ({ status }) => status?.ready === true,
    );
  });

  describe('through a template with historyTTL', () => {
    it('stays that long, and then goes, also if its user named it', async () => {
      await stage.configure('ExecAccessTemplate', 'payments-exec', { historyTTL: '8s' });
      const asked = await stage.createReady(stage.alice, execRequest('named', { duration: '5s' }));
      const request = await ended(asked);
      assert.equal(await keptMs('ear', 'named'), 8000);
      const { keptUntil: untilText } = request.status?.ended ?? {};
      assert.deepEqual((await row('ear', 'named')).slice(4, 5), ['Expired']);
      await until('it to go', async () => (await stage.read(asked.kind, 'named')) === undefined, {
        timeoutMs: 30_000,
      });
      assert.ok(Date.now() >= Date.parse(untilText ?? ''));
    });

    for (const historyTTL of ['169h', '-1h', 'a day']) {
      it(`of ${historyTTL} is not stored`, async () => {
        const patch = JSON.stringify({ spec: { accessConfig: { historyTTL } } });
        const args = ['patch', 'eat', 'payments-exec', '-n', stage.namespace, '--type=merge', '-p', patch];
        const { stderr } = await stage.plane.kubectl(args, { reject: false });
        assert.match(stderr, /historyTTL: .*must be a Go duration from 0s to 168h/);
      });
    }
  });
});
