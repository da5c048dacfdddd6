import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { Narrator } from './narrator.ts';
import { type Plane, startPlane } from './plane.ts';
import { type AuditLine, ServerProcess } from './server-process.ts';
import { until } from './wait.ts';

/**
 * `make run`: the demo of access on a real control plane. Alice requests access, gets it, uses it, and it ends on time.
 * With ONCE=1 the demo ends there; otherwise the server runs until Ctrl-C. Exit code 1 if a step failed.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const duration = process.env['DURATION'] ?? '15s';
const namespace = 'payments';
const request = 'debug-payments';
const examples = ['workload', 'rbac', 'templates'].map((name) => `${root}examples/${name}.yaml`);

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: opens access for a while and closes it on time');
  const plane = await startPlane({
    crds: [`${root}charts/drawbridge/crds`],
    onProgress: (line) => console.log(`   ${line}`),
  });
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const server = await ServerProcess.start(plane, { flags: ['--leader-elect=true'] });
  try {
    await story(narrator, plane, server);
    if (process.env['ONCE']) return;
    await stayUp(narrator, plane, server);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}`);
    throw error;
  } finally {
    await server.stop();
    await plane.stop();
  }
}

async function story(narrator: Narrator, plane: Plane, server: ServerProcess): Promise<void> {
  const alice = await plane.kubeconfigFor('alice', ['devs']);
  const bob = await plane.kubeconfigFor('bob', ['qa']);
  const carol = await plane.kubeconfigFor('carol', ['devs']);
  const run = async (
    args: string,
    options: { kubeconfig?: string; input?: string; reject?: boolean } = {},
  ): Promise<string> => {
    const result = await plane.kubectl(args.split(' '), options);
    return result.stdout + result.stderr;
  };
  const asAlice = { kubeconfig: alice };
  const auditLine = (matches: (line: AuditLine) => boolean): Promise<AuditLine> =>
    until('the audit line', async () => (await server.audit(matches)).at(-1), { timeoutMs: 30_000 });

  narrator.step('A cluster with drawbridge');
  narrator.evidence(
    `Kubernetes at ${plane.server}; webhooks, CRDs, and permissions are installed; the server runs as ${server.installation.serverUser}`,
  );

  narrator.step('A workload, and templates that name the groups that may enter it');
  for (const file of examples) await run(`apply -f ${file}`);
  await run(`rollout status -n ${namespace} deployment/payments --timeout=60s`);
  await run(`wait -n ${namespace} podaccesstemplate/payments-shell --for=jsonpath={.status.ready}=true --timeout=30s`);
  narrator.command('kubectl apply -f examples/workload.yaml -f examples/rbac.yaml -f examples/templates.yaml');
  narrator.evidence(await run(`get -n ${namespace} deployments,podaccesstemplates,execaccesstemplates`));

  const manifest = requestFor(duration);
  narrator.step('bob of group qa requests access, and is denied');
  narrator.command(`kubectl create -f pod-access-request.yaml --as bob`);
  // Step 2 let only devs create requests. With this RoleBinding, drawbridge denies bob's request, and not the API server.
  await run(`create rolebinding bob-may-request -n ${namespace} --role=request-access --user=bob`);
  narrator.evidence(await run('create -f -', { kubeconfig: bob, input: manifest, reject: false }));
  narrator.audit(await auditLine((line) => line.who.user === 'bob' && line.verdict === 'denied'));

  narrator.step(`alice of group devs requests ${duration}`);
  narrator.command(`kubectl create -f pod-access-request.yaml --as alice`);
  narrator.evidence(await run('create -f -', { ...asAlice, input: manifest }));
  narrator.audit(await auditLine((line) => line.who.user === 'alice' && line.event === 'admission'));

  await run(`wait -n ${namespace} podaccessrequest/${request} --for=condition=AccessResourcesReady --timeout=30s`);
  narrator.step('The server has created a pod, a Role, and a RoleBinding for alice');
  const pod = (await run(`get -n ${namespace} podaccessrequest/${request} -o jsonpath={.status.podName}`)).trim();
  narrator.evidence(await run(`get -n ${namespace} pods,roles,rolebindings -l access.drawbridge.dev/request`));
  narrator.audit(await auditLine((line) => line.event === 'grant' && line.verdict === 'granted'));

  narrator.step('The request is ready');
  narrator.command(`kubectl get -n ${namespace} podaccessrequest/${request}`);
  narrator.evidence(await run(`get -n ${namespace} podaccessrequest/${request}`, asAlice));
  const { spec, status } = parse(await run(`get -n ${namespace} podaccessrequest/${request} -o yaml`, asAlice));
  narrator.evidence(
    stringify({ spec, status: { grant: status.grant, ready: status.ready, accessMessage: status.accessMessage } }),
  );

  narrator.step('alice may exec into the pod; carol of the same group may not');
  const canI = (kubeconfig: string): Promise<string> =>
    run(`auth can-i create pods/${pod} --subresource=exec -n ${namespace}`, { kubeconfig, reject: false }).then(
      (text) => text.split('\n')[0] ?? '',
    );
  narrator.evidence(
    `alice: ${await expectAnswer('yes', canI(alice))}   carol: ${await expectAnswer('no', canI(carol))}`,
  );
  narrator.command(`kubectl exec -n ${namespace} ${pod} -- echo hello from the access pod`);
  narrator.evidence(await run(`exec -n ${namespace} ${pod} -- echo hello from the access pod`, asAlice));
  narrator.audit(await auditLine((line) => line.event === 'exec' && line.who.user === 'alice'));

  narrator.evidence(`waiting until the grant expires, at ${status.grant.expiresAt}`);
  await until(
    'the request to be gone',
    async () =>
      (await plane.kubectl(['get', '-n', namespace, 'podaccessrequest', request], { reject: false })).code !== 0,
    { timeoutMs: 60_000, everyMs: 200 },
  );
  narrator.step('The grant has expired: the server has deleted everything');
  narrator.evidence(`alice: ${await expectAnswer('no', canI(alice))}`);
  narrator.evidence(
    await run(`get -n ${namespace} podaccessrequests,pods,roles,rolebindings -l access.drawbridge.dev/request`),
  );
  const revoked = await auditLine((line) => line.event === 'revocation');
  narrator.audit(revoked);
  narrator.end(
    `Done: access opened for alice at her request, and closed ${Date.parse(String(revoked['time'])) - Date.parse(String(revoked['expiresAt']))} ms after the deadline.`,
  );
}

function requestFor(time: string): string {
  return `apiVersion: crds.wizardofoz.co/v1alpha1
kind: PodAccessRequest
metadata:
  name: ${request}
  namespace: ${namespace}
spec:
  templateName: payments-shell
  duration: ${time}
`;
}

async function expectAnswer(wanted: string, answer: Promise<string>): Promise<string> {
  const got = await answer;
  if (got !== wanted) throw new Error(`expected the answer "${wanted}" and got "${got}"`);
  return got;
}

async function stayUp(narrator: Narrator, plane: Plane, server: ServerProcess): Promise<void> {
  const alice = await plane.kubeconfigFor('alice', ['devs']);
  narrator.title('The server keeps running. Try it as alice in another terminal (Ctrl-C here stops everything):');
  narrator.command(`cd ${root}`);
  narrator.command(`export KUBECONFIG=${alice} PATH=${plane.binaries.kubectl.replace(/\/[^/]+$/, '')}:$PATH`);
  narrator.command('kubectl create -f examples/pod-access-request.yaml');
  narrator.command(`kubectl get -n ${namespace} podaccessrequests -w`);
  narrator.command(
    `kubectl exec -ti -n ${namespace} $(kubectl get -n ${namespace} podaccessrequest debug-payments -o jsonpath={.status.podName}) -- sh`,
  );
  narrator.evidence(`audit trail: ${server.auditFile}\nserver log:  ${server.logFile}`);
  await until('the server to end', () => !server.running, { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 500 });
  throw new Error(`the server ended:\n${await server.log()}`);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`\nfailed: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
