import { stringify } from 'yaml';
import { apiServiceBindings, kubeconfigKey } from '../src/api/binding/names.ts';
import { apiVersionOf } from '../src/api/object.ts';
import { Backend } from './binding/backend.ts';
import { fixtureKinds, fixtureObject } from './binding/fixture-kinds.ts';
import { KonnectorProcess } from './binding/konnector-process.ts';
import { Provider } from './binding/provider.ts';
import { Helm } from './chart/helm.ts';
import { Narrator } from './narrator.ts';
import { type Plane, startPlane } from './plane.ts';
import { until } from './wait.ts';

/**
 * `make run DEMO=binding`: the demo of binding on two real control planes. A provider exports a kind, the consumer binds it, an object is
 * copied up, and its status is copied down. The backend of the tests stands in for kube-bind's. With ONCE=1 the demo ends there; otherwise
 * both planes run until Ctrl-C. Exit code 1 if a step failed.
 */
const release = 'kube-bind';
const user = `system:serviceaccount:${release}:drawbridge-binding`;
const namespace = 'team-a';
const isolation = 'Prefixed';
const { kettles } = fixtureKinds('kitchen.example', isolation);
const kind = kettles.crd.metadata.name;

async function main(): Promise<void> {
  const tell = new Narrator();
  tell.title('drawbridge: a kind of another cluster, served in this one');
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const components = ['kube-controller-manager'] as const;
  const onProgress = (line: string): void => console.log(`   ${line}`);
  const consumer = await startPlane({ components, onProgress });
  const acme = await startPlane({ components, onProgress });
  const provider = await Provider.open(acme);
  await provider.install(kettles.crd);
  const place = { clusterNamespace: 'kube-bind-1a2b', isolation, informerScope: 'Namespaced' } as const;
  const backend = await Backend.open(provider, place);
  const konnector = await startKonnector(consumer);
  try {
    await story(tell, consumer, acme, backend);
    if (process.env['ONCE']) return;
    await stayUp(tell, consumer, acme, konnector);
  } catch (error) {
    console.error(`\nthe konnector's log:\n${await konnector.log()}`);
    throw error;
  } finally {
    await konnector.stop();
    await backend.close();
    await provider.close();
    await Promise.all([consumer.stop(), acme.stop()]);
  }
}

/** Runs the konnector with exactly the permissions that the chart grants. */
async function startKonnector(plane: Plane): Promise<KonnectorProcess> {
  const helm = new Helm({ program: plane.binaries.helm, home: plane.directory });
  const values = { features: { access: false, binding: true }, binding: { bindable: [kind] } };
  const rights = await helm.template(release, values, '--show-only', 'templates/binding.yaml');
  await plane.kubectl(['create', 'namespace', release]);
  await plane.kubectl(['apply', '-f', '-'], { input: rights.map((manifest) => stringify(manifest)).join('---\n') });
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${release}`, 'system:authenticated'];
  const kubeconfig = await plane.kubeconfigFor(user, groups);
  return KonnectorProcess.start(plane, { kubeconfig, flags: ['--leader-elect=true', `--bindable=${kind}`] });
}

async function story(tell: Narrator, consumer: Plane, acme: Plane, backend: Backend): Promise<void> {
  const here = runner(consumer);
  const there = runner(acme);
  const kettle = { namespace, name: 'evening' };

  tell.step('Two clusters: ours, with drawbridge, and that of the provider Acme, which has a kind');
  tell.evidence(`ours: ${consumer.server}; the konnector runs as ${user} and may bind ${kind}`);
  tell.evidence(`Acme: ${acme.server}`);
  tell.evidence(await there(`get crd ${kind} -o custom-columns=NAME:.metadata.name`));
  tell.evidence(`ours knows no such kind:\n${await here('get kettles', { reject: false })}`);

  tell.step('Acme exports it to us and issues a kubeconfig');
  await backend.export({ name: 'kettles', kinds: [kettles] });
  tell.evidence(await there(`get apiserviceexports,boundschemas -n ${backend.clusterNamespace} -o name`));

  tell.step('We put the kubeconfig into a Secret and bind the export');
  const kubeconfig = { [kubeconfigKey]: backend.identity.kubeconfig };
  tell.command(`kubectl create secret generic acme -n ${release} --from-file=kubeconfig=acme.kubeconfig`);
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: release, name: 'acme' } };
  await here('apply -f -', { input: stringify({ ...secret, stringData: kubeconfig }) });
  const binding = {
    apiVersion: apiVersionOf(apiServiceBindings),
    kind: apiServiceBindings.kind,
    metadata: { name: 'kettles' },
    spec: { kubeconfigSecretRef: { namespace: release, name: 'acme', key: kubeconfigKey } },
  };
  tell.command('kubectl apply -f binding.yaml');
  tell.evidence(stringify(binding));
  await here('apply -f -', { input: stringify(binding) });
  await here('wait sb/kettles --for=condition=Ready --timeout=60s');
  tell.evidence(await here('get sb'));

  tell.step('Our cluster serves the kind; we create an object of it');
  await here(`create namespace ${namespace}`);
  const manifest = stringify(fixtureObject(kettles, kettle, { heat: 100, note: 'for six' }));
  tell.command('kubectl apply -f kettle.yaml');
  tell.evidence(manifest);
  await here('apply -f -', { input: manifest });

  tell.step('Acme has a copy of it');
  const service = await backend.whenNamespace(namespace);
  const copy = `kettle/${kettle.name} -n ${service}`;
  await eventually('the copy', async () => (await there(`get ${copy} -o name`, { reject: false })).includes('/'));
  tell.command('kubectl get kettles -A   # at Acme');
  tell.evidence(await there('get kettles -A'));
  tell.evidence(await there(`get ${copy} -o jsonpath={.metadata.annotations}`));

  tell.step('A controller of Acme writes a status, and the status comes back');
  const status = JSON.stringify({ status: { result: 'boiling', heat: 100 } });
  await there(`patch ${copy} --subresource=status --type=merge -p ${status}`);
  await here(`wait kettle/${kettle.name} -n ${namespace} --for=jsonpath={.status.result}=boiling --timeout=30s`);
  tell.command(`kubectl get kettles -n ${namespace}`);
  tell.evidence(await here(`get kettles -n ${namespace}`));

  tell.step('We change one field and remove another; both changes reach Acme');
  const change = JSON.stringify({ spec: { heat: 60, note: null } });
  tell.command(`kubectl patch kettle ${kettle.name} -n ${namespace} --type=merge -p '${change}'`);
  await here(`patch kettle ${kettle.name} -n ${namespace} --type=merge -p ${change}`);
  await there(`wait ${copy} --for=jsonpath={.spec.heat}=60 --timeout=30s`);
  tell.evidence(`spec at Acme: ${await there(`get ${copy} -o jsonpath={.spec}`)}`);

  tell.step('We delete it: the object stays until its copy is gone');
  tell.command(`kubectl delete kettle ${kettle.name} -n ${namespace}`);
  tell.evidence(await here(`delete kettle ${kettle.name} -n ${namespace} --timeout=30s`));
  tell.evidence(`at Acme: ${await there(`get kettles -n ${service}`)}`);
  tell.end('Done: nothing of Acme runs in our cluster, and nothing of ours is left at Acme.');
}

type Run = (args: string, options?: { readonly input?: string; readonly reject?: boolean }) => Promise<string>;

function runner(plane: Plane): Run {
  return async (args, options = {}) => {
    const { stdout, stderr } = await plane.kubectl(args.split(' '), options);
    return stdout + stderr;
  };
}

const eventually = (what: string, look: () => Promise<boolean>): Promise<boolean> =>
  until(what, look, { timeoutMs: 30_000, everyMs: 100 });

async function stayUp(tell: Narrator, consumer: Plane, acme: Plane, konnector: KonnectorProcess): Promise<void> {
  tell.title('Both keep running. Try it in another terminal (Ctrl-C here stops everything):');
  tell.command(`cd ${process.cwd()}`);
  tell.command(`export PATH=${consumer.binaries.kubectl.replace(/\/[^/]+$/, '')}:$PATH`);
  tell.command(`export KUBECONFIG=${consumer.adminKubeconfig}   # ours`);
  tell.command(`export KUBECONFIG=${acme.adminKubeconfig}   # Acme's`);
  tell.evidence(`the konnector's log: ${konnector.logFile}`);
  await until('the konnector to end', () => !konnector.running, { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 500 });
  throw new Error('the konnector ended');
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(`\nfailed: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
