import { stringify } from 'yaml';
import { apiServiceBindingBundles, kubeconfigKey } from '../src/api/binding/names.ts';
import { apiVersionOf } from '../src/api/object.ts';
import { addressesOf } from './addresses.ts';
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
 * copied to the provider, and its status is copied back. The test backend replaces kube-bind's. With ONCE=1 the demo ends there; otherwise
 * both planes run until Ctrl-C. Exit code 1 if a step failed.
 */
const release = 'kube-bind';
const user = `system:serviceaccount:${release}:drawbridge-binding`;
const namespace = 'team-a';
const isolation = 'Prefixed';
const { kettles } = fixtureKinds('kitchen.example', isolation);
const kind = kettles.crd.metadata.name;

async function main(): Promise<void> {
  const narrator = new Narrator();
  narrator.title('drawbridge: a kind of another cluster, served in this one');
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const components = ['kube-controller-manager'] as const;
  const onProgress = (line: string): void => console.log(`   ${line}`);
  const consumer = await startPlane({ components, onProgress });
  const acme = await startPlane({ components, onProgress });
  const provider = await Provider.open(acme);
  await provider.install(kettles.crd);
  const options = { clusterNamespace: 'kube-bind-1a2b', isolation, informerScope: 'Namespaced' } as const;
  const backend = await Backend.open(provider, options);
  const konnector = await startKonnector(consumer);
  try {
    await story(narrator, consumer, acme, backend);
    if (process.env['ONCE']) return;
    await stayUp(narrator, consumer, acme, konnector);
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

async function story(narrator: Narrator, consumer: Plane, acme: Plane, backend: Backend): Promise<void> {
  const here = runner(consumer);
  const there = runner(acme);
  const kettle = { namespace, name: 'evening' };

  narrator.step(
    'Two clusters: ours, with drawbridge, and the cluster of the provider Acme, which serves the kind Kettle',
  );
  narrator.evidence(`ours: ${consumer.server}; the konnector runs as ${user} and may bind ${kind}`);
  narrator.evidence(`Acme: ${acme.server}`);
  narrator.evidence(await there(`get crd ${kind} -o custom-columns=NAME:.metadata.name`));
  narrator.evidence(`ours does not serve the kind:\n${await here('get kettles', { reject: false })}`);

  narrator.step('Acme exports the kind and issues a kubeconfig');
  await backend.export({ name: 'kettles', kinds: [kettles] });
  narrator.evidence(await there(`get apiserviceexports,boundschemas -n ${backend.clusterNamespace} -o name`));

  narrator.step('We store the kubeconfig in a Secret, and bind everything that Acme exports');
  const kubeconfig = { [kubeconfigKey]: backend.identity.kubeconfig };
  narrator.command(`kubectl create secret generic acme -n ${release} --from-file=kubeconfig=acme.kubeconfig`);
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: release, name: 'acme' } };
  await here('apply -f -', { input: stringify({ ...secret, stringData: kubeconfig }) });
  const bundle = {
    apiVersion: apiVersionOf(apiServiceBindingBundles),
    kind: apiServiceBindingBundles.kind,
    metadata: { name: 'acme' },
    spec: { kubeconfigSecretRef: { namespace: release, name: 'acme', key: kubeconfigKey } },
  };
  narrator.command('kubectl apply -f bundle.yaml');
  narrator.evidence(stringify(bundle));
  await here('apply -f -', { input: stringify(bundle) });
  await eventually('the binding', async () => (await here('get sb kettles -o name', { reject: false })).includes('/'));
  await here('wait sb/kettles --for=condition=Ready --timeout=60s');
  narrator.evidence(await here('get sb'));

  narrator.step('Our cluster serves the kind; we create a Kettle');
  await here(`create namespace ${namespace}`);
  const manifest = stringify(fixtureObject(kettles, kettle, { heat: 100, note: 'for six' }));
  narrator.command('kubectl apply -f kettle.yaml');
  narrator.evidence(manifest);
  await here('apply -f -', { input: manifest });

  const service = await backend.whenNamespace(namespace);
  const copy = `kettle/${kettle.name} -n ${service}`;
  await eventually('the copy', async () => (await there(`get ${copy} -o name`, { reject: false })).includes('/'));
  narrator.step('The konnector has created a copy at Acme');
  narrator.command('kubectl get kettles -A   # at Acme');
  narrator.evidence(await there('get kettles -A'));
  narrator.evidence(await there(`get ${copy} -o jsonpath={.metadata.annotations}`));

  narrator.step('A controller of Acme writes the status of the copy, and the konnector copies it to our object');
  const status = JSON.stringify({ status: { result: 'boiling', heat: 100 } });
  await there(`patch ${copy} --subresource=status --type=merge -p ${status}`);
  await here(`wait kettle/${kettle.name} -n ${namespace} --for=jsonpath={.status.result}=boiling --timeout=30s`);
  narrator.command(`kubectl get kettles -n ${namespace}`);
  narrator.evidence(await here(`get kettles -n ${namespace}`));

  narrator.step('We change one field and remove another; the konnector applies both changes to the copy');
  const change = JSON.stringify({ spec: { heat: 60, note: null } });
  narrator.command(`kubectl patch kettle ${kettle.name} -n ${namespace} --type=merge -p '${change}'`);
  await here(`patch kettle ${kettle.name} -n ${namespace} --type=merge -p ${change}`);
  await there(`wait ${copy} --for=jsonpath={.spec.heat}=60 --timeout=30s`);
  narrator.evidence(`spec at Acme: ${await there(`get ${copy} -o jsonpath={.spec}`)}`);

  narrator.step('We delete the object: it stays until its copy is deleted');
  narrator.command(`kubectl delete kettle ${kettle.name} -n ${namespace}`);
  narrator.evidence(await here(`delete kettle ${kettle.name} -n ${namespace} --timeout=30s`));
  narrator.evidence(`at Acme: ${await there(`get kettles -n ${service}`)}`);
  narrator.end('Done: our cluster runs no program of Acme, and Acme keeps no copy.');
}

type Run = (args: string, options?: { readonly input?: string; readonly reject?: boolean }) => Promise<string>;

function runner(plane: Plane): Run {
  return async (args, options = {}) => {
    const { stdout, stderr } = await plane.kubectl(args.split(' '), options);
    return stdout + stderr;
  };
}

const eventually = (what: string, condition: () => Promise<boolean>): Promise<boolean> =>
  until(what, condition, { timeoutMs: 30_000, everyMs: 100 });

async function stayUp(narrator: Narrator, consumer: Plane, acme: Plane, konnector: KonnectorProcess): Promise<void> {
  narrator.title('Both keep running. Try it in another terminal (Ctrl-C here stops everything):');
  const lines = [
    `cd ${process.cwd()}`,
    `export PATH=${consumer.binaries.kubectl.replace(/\/[^/]+$/, '')}:$PATH`,
    `export KUBECONFIG=${consumer.adminKubeconfig}   # ours`,
    `# or, for Acme's cluster: export KUBECONFIG=${acme.adminKubeconfig}`,
  ];
  narrator.evidence(lines.join('\n'));
  narrator.evidence(addressesOf(consumer, konnector));
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
