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
  const tell = new Narrator();
  tell.title('drawbridge: opens access for a while and closes it on time');
  const plane = await startPlane({
    crds: [`${root}charts/drawbridge/crds`],
    onProgress: (line) => console.log(`   ${line}`),
  });
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const server = await ServerProcess.start(plane, { flags: ['--leader-elect=true'] });
  try {
    await story(tell, plane, server);
    if (process.env['ONCE']) return;
    await stayUp(tell, plane, server);
  } catch (error) {
    console.error(`\nthe server's log:\n${await server.log()}`);
    throw error;
  } finally {
    await server.stop();
    await plane.stop();
  }
}

async function story(tell: Narrator, plane: Plane, server: ServerProcess): Promise<void> {
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

  tell.step('A cluster with drawbridge');
  tell.evidence(
    `Kubernetes at ${plane.server}; webhooks, CRDs and rights installed; the server runs as ${server.installation.serverUser}`,
  );

  tell.step('A workload, and templates that say who may enter it');
  for (const file of examples) await run(`apply -f ${file}`);
  await run(`rollout status -n ${namespace} deployment/payments --timeout=60s`);
  await run(`wait -n ${namespace} podaccesstemplate/payments-shell --for=jsonpath={.status.ready}=true --timeout=30s`);
  tell.command('kubectl apply -f examples/workload.yaml -f examples/rbac.yaml -f examples/templates.yaml');
  tell.evidence(await run(`get -n ${namespace} deployments,podaccesstemplates,execaccesstemplates`));

  const ask = requestFor(duration);
  tell.step('bob of group qa requests access, and is denied');
  tell.command(`kubectl create -f pod-access-request.yaml --as bob`);
  // bob may create requests (step 2 gave that to devs alone), so that it is drawbridge that refuses.
  await run(`create rolebinding bob-may-ask -n ${namespace} --role=request-access --user=bob`);
  tell.evidence(await run('create -f -', { kubeconfig: bob, input: ask, reject: false }));
  tell.audit(await auditLine((line) => line.who.user === 'bob' && line.verdict === 'denied'));

  tell.step(`alice of group devs requests ${duration}`);
  tell.command(`kubectl create -f pod-access-request.yaml --as alice`);
  tell.evidence(await run('create -f -', { ...asAlice, input: ask }));
  tell.audit(await auditLine((line) => line.who.user === 'alice' && line.event === 'admission'));

  tell.step('The server creates a pod, a Role, and a RoleBinding for her');
  await run(`wait -n ${namespace} podaccessrequest/${request} --for=condition=AccessResourcesReady --timeout=30s`);
  const pod = (await run(`get -n ${namespace} podaccessrequest/${request} -o jsonpath={.status.podName}`)).trim();
  tell.evidence(await run(`get -n ${namespace} pods,roles,rolebindings -l access.drawbridge.dev/request`));
  tell.audit(await auditLine((line) => line.event === 'grant' && line.verdict === 'granted'));

  tell.step('Her request is ready');
  tell.command(`kubectl get -n ${namespace} podaccessrequest/${request}`);
  tell.evidence(await run(`get -n ${namespace} podaccessrequest/${request}`, asAlice));
  const { spec, status } = parse(await run(`get -n ${namespace} podaccessrequest/${request} -o yaml`, asAlice));
  tell.evidence(
    stringify({ spec, status: { grant: status.grant, ready: status.ready, accessMessage: status.accessMessage } }),
  );

  tell.step('She may exec into it; carol of the same group may not');
  const canI = (kubeconfig: string): Promise<string> =>
    run(`auth can-i create pods/${pod} --subresource=exec -n ${namespace}`, { kubeconfig, reject: false }).then(
      (text) => text.split('\n')[0] ?? '',
    );
  tell.evidence(`alice: ${await expectAnswer('yes', canI(alice))}   carol: ${await expectAnswer('no', canI(carol))}`);
  tell.command(`kubectl exec -n ${namespace} ${pod} -- echo hello from the access pod`);
  tell.evidence(await run(`exec -n ${namespace} ${pod} -- echo hello from the access pod`, asAlice));
  tell.audit(await auditLine((line) => line.event === 'exec' && line.who.user === 'alice'));

  tell.step('The time is up: the server has deleted everything');
  await until(
    'the request to be gone',
    async () =>
      (await plane.kubectl(['get', '-n', namespace, 'podaccessrequest', request], { reject: false })).code !== 0,
    { timeoutMs: 60_000, everyMs: 200 },
  );
  tell.evidence(`alice: ${await expectAnswer('no', canI(alice))}`);
  tell.evidence(
    await run(`get -n ${namespace} podaccessrequests,pods,roles,rolebindings -l access.drawbridge.dev/request`),
  );
  const revoked = await auditLine((line) => line.event === 'revocation');
  tell.audit(revoked);
  tell.end(
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

async function stayUp(tell: Narrator, plane: Plane, server: ServerProcess): Promise<void> {
  const alice = await plane.kubeconfigFor('alice', ['devs']);
  tell.title('The server keeps running. Try it as alice in another terminal (Ctrl-C here stops everything):');
  tell.command(`cd ${root}`);
  tell.command(`export KUBECONFIG=${alice} PATH=${plane.binaries.kubectl.replace(/\/[^/]+$/, '')}:$PATH`);
  tell.command('kubectl create -f examples/pod-access-request.yaml');
  tell.command(`kubectl get -n ${namespace} podaccessrequests -w`);
  tell.command(
    `kubectl exec -ti -n ${namespace} $(kubectl get -n ${namespace} podaccessrequest debug-payments -o jsonpath={.status.podName}) -- sh`,
  );
  tell.evidence(`audit trail: ${server.auditFile}\nserver log:  ${server.logFile}`);
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
