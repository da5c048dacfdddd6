import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { Terminal } from '../../sandbox/terminal.ts';
import { execRequest, podRequest, type StoredRequest } from '../support/access-requests.ts';
import { grantable, installLimitMs, NodeStage } from '../support/node-stage.ts';
import type { Person } from '../support/person.ts';

const name = 'payments-debug';
/** A container of kubectl debug, as the tests name it. */
const container = 'debugger';

describe('kubectl debug on a real node', function () {
  this.timeout(120_000);
  let stage: NodeStage;
  let shell: Terminal;
  let request: StoredRequest;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    const controllerTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
    const { namespace } = stage;
    await stage.apply(
      ...['PodAccessTemplate', 'ExecAccessTemplate'].map((kind) => ({
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind,
        metadata: { name, namespace },
        spec: { accessConfig: { allowedGroups: ['devs'], rules: grantable }, controllerTargetRef },
      })),
      // Carol may debug every Pod by RBAC.
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name, namespace },
        rules: [...grantable, { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
      },
    );
    await stage.sh(`kubectl create rolebinding ${name} -n payments --role=${name} --group=sre`);
    await stage.templatesReady();
  });
  after(async () => {
    shell?.kill();
    await stage?.deleteRequests();
    await stage?.sh(
      `kubectl delete podaccesstemplate/${name} execaccesstemplate/${name} role/${name} rolebinding/${name} -n payments`,
    );
  });

  describe('of an access pod', () => {
    before(async () => {
      request = await stage.createReady(stage.alice, podRequest('debugged', { templateName: name }));
    });

    it('is denied to all but the users of the grant', async () => {
      const { code, stderr } = await debug(stage.carol, '--profile=baseline');
      assert.equal(code, 1);
      assert.match(stderr, /NoGrant/);
    });

    it('is denied with the default profile, and the denial names the profile that works', async () => {
      const { code, stderr } = await debug(stage.alice);
      assert.equal(code, 1);
      assert.match(stderr, /PodReachesTooFar: .* adds capabilities.*kubectl debug works with --profile=baseline/s);
    });

    it('opens a shell with that profile, which ends with the access pod', async () => {
      shell = stage.terminal(stage.alice, 'kubectl', ...words('--profile=baseline', '-ti', '--', 'sh'));
      shell.write('echo "in $((40 + 2))"\n');
      await shell.shows(/in 42/);
      const processes = await stage.node.processesOf(stage.namespace, pod(), container);
      assert.ok(processes.length > 0);
      await stage.sh('kubectl delete podaccessrequest debugged -n payments');
      await shell.exit();
      await ends(processes);
    });
  });

  describe('of a Pod of the workload', () => {
    it('adds a container that outlives the grant, and ends with the Pod, as the documents say', async () => {
      request = await stage.createReady(stage.alice, execRequest('debugged', { templateName: name }));
      const { code, stderr } = await debug(stage.alice, '--', 'sleep', '600');
      assert.equal(code, 0, stderr);
      let processes: readonly number[] = [];
      await stage.lateness('the container to run', Date.now(), async () => {
        processes = await stage.node.processesOf(stage.namespace, pod(), container);
        return processes.length > 0;
      });
      await stage.sh('kubectl delete execaccessrequest debugged -n payments');
      await stage.lateness(
        'RBAC to close',
        Date.now(),
        async () => !(await stage.alice.mayExec(stage.namespace, pod())),
      );
      assert.match((await debug(stage.alice)).stderr, /forbidden/i);
      assert.ok(processes.every((id) => existsSync(`/proc/${id}`)));
      await stage.sh(`kubectl delete pod ${pod()} -n payments --grace-period=1`);
      await ends(processes);
      await stage.sh('kubectl rollout status deployment/payments -n payments --timeout=60s');
    });
  });

  const pod = (): string => request.status?.podName ?? '';
  const words = (...flags: readonly string[]): string[] => [
    ...['debug', pod(), '--image=busybox:1.37', `--container=${container}`],
    ...flags,
  ];
  const debug = (person: Person, ...flags: readonly string[]) =>
    person.kubectl(['-n', stage.namespace, ...words(...flags)], { reject: false });

  const ends = (processes: readonly number[]): Promise<number> =>
    stage.lateness('the container to end', Date.now(), () => processes.every((id) => !existsSync(`/proc/${id}`)));
});
