import assert from 'node:assert/strict';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { fixtureKind, fixtureObject } from '../../../sandbox/binding/fixture-kinds.ts';
import { chart, type Manifest } from '../../../sandbox/chart/helm.ts';
import { hostAnnotation } from '../../../sandbox/chart/host-kubelet.ts';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindings } from '../../../src/api/binding/names.ts';
import { customResourceDefinitions } from '../../../src/api/resources.ts';
import { BindingChartStage } from '../../support/binding/chart-stage.ts';
import { getIfThere } from '../../support/binding/consumer.ts';
import { kitchenClaim } from '../../support/binding/kitchen-secrets.ts';
import { commandsOf, type Reader, runAsReader, scriptOf, tryAsReader } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

const bindPage = 'docs/binding/bind-a-provider.md';
const unbindPage = 'docs/binding/unbind-a-provider.md';
const migratePage = 'docs/binding/migrate-from-kube-bind.md';

describe('the commands of the pages of binding, in one cluster, in this order', function () {
  this.timeout(240_000);
  const widgets = fixtureKind({ group: 'acme.example', plural: 'widgets', kind: 'Widget' });
  const blue = { namespace: 'team-a', name: 'blue' };
  const copyName = { namespace: 'kube-bind-1a2b-team-a', name: blue.name };
  let stage: BindingChartStage;
  /** The administrators of this cluster, and of the provider. */
  let reader: Reader;
  let provider: Reader;
  const copyOfBlue = () => getIfThere(stage.provider.client, widgets.inProvider, copyName);

  /** Runs the block of a page that has the words. */
  const run = (page: string, words: string, as = reader): Promise<string> => runAsReader(as, scriptOf(page, words));
  const prints = async (page: string, words: string, expected: RegExp): Promise<void> =>
    assert.match(await run(page, words), expected);
  /** Runs it until the output is that of the page. */
  const runUntil = async (page: string, words: string, expected: RegExp): Promise<void> => {
    let output = '';
    const isShown = async (): Promise<boolean> => {
      output = (await tryAsReader(reader, `exec 2>&1\n${scriptOf(page, words)}`)).stdout;
      return expected.test(output);
    };
    await until(words, isShown, { timeoutMs: 60_000 }).catch(async () =>
      assert.match(output, expected, await stage.kubelet.logs()),
    );
  };
  /** Installs the chart with values for the sandbox, and a kind that the provider claims. */
  const install = async (): Promise<void> => {
    const [helm = '', wait = ''] = commandsOf(bindPage, 'helm install');
    const sandbox = `--set service.port=${stage.kubelet.port} --set-string podAnnotations.${hostAnnotation}=true`;
    await runAsReader(reader, `${helm} ${sandbox} --set 'binding.claimable={secrets}'`);
    assert.match(await runAsReader(reader, wait), shown('binding/bind-a-provider.md', 'successfully rolled out'));
  };
  const bindAll = async (): Promise<void> => {
    await prints(bindPage, 'kubectl apply -f -', shown('binding/bind-a-provider.md', 'apiservicebindingbundle'));
  };
  const whenReady = () => runUntil(bindPage, 'kubectl get sb', shown('binding/bind-a-provider.md', 'True'));

  before(async () => {
    stage = await BindingChartStage.open('kube-bind');
    const { backend, plane } = stage;
    reader = { plane, folder: plane.directory };
    provider = { plane: stage.provider.plane, folder: plane.directory };
    await symlink(join(chart, '..'), join(reader.folder, 'charts'));
    await writeFile(join(reader.folder, 'acme.kubeconfig'), backend.identity.kubeconfig);
    await writeFile(join(reader.folder, 'widget.yaml'), stringify(fixtureObject(widgets, { name: blue.name })));
    await runAsReader(reader, `kubectl create namespace ${blue.namespace}`);
    await stage.provider.install(widgets.crd);
    stage.provider.rights = 'last';
    await backend.export({ name: 'widgets', kinds: [widgets], claims: [kitchenClaim] });
  });
  after(async () => {
    if (!stage) return;
    await runAsReader(
      provider,
      'kubectl delete --ignore-not-found clusterrolebinding kube-binder-exports-kube-bind-1a2b',
    );
    await stage.provider.remove(customResourceDefinitions, widgets.crd.metadata.name);
    await stage.close();
  });

  it('see first what drawbridge would write', async () => {
    await install();
    await run(bindPage, 'extraArgs={--dry-run}');
    await runUntil(bindPage, 'kubectl get lease', shown('binding/bind-a-provider.md', 'HOLDER'));
    await prints(bindPage, 'kubectl create secret', shown('binding/bind-a-provider.md', 'secret/acme'));
    await bindAll();
    const logged = async (): Promise<boolean> => (await stage.kubelet.logs()).includes('"message":"would create"');
    await until('the write in the log', logged, { timeoutMs: 30_000 });
    assert.equal(await getIfThere(stage.client, apiServiceBindings, { name: 'widgets' }), undefined);
    await run(bindPage, 'extraArgs=null');
  });

  it('bind', async () => {
    await whenReady();
    await prints(bindPage, 'widget.yaml', shown('binding/bind-a-provider.md', 'widget.acme.example'));
    await until('the copy', copyOfBlue, { timeoutMs: 30_000 });
    const status = { status: { result: 'painted' } };
    await stage.provider.client.mergePatch(widgets.inProvider, copyName, status, { subresource: 'status' });
    await runUntil(bindPage, 'kubectl get widgets', shown('binding/bind-a-provider.md', 'painted'));
  });

  it('restore the permissions after a second cluster has bound the same provider', async () => {
    await stage.provider.bindExportsTo('kube-bind-5e6f');
    await runUntil(bindPage, 'kubectl get sb', shown('binding/bind-a-provider.md', 'False'));
    assert.equal(await run(bindPage, 'config view'), 'kube-bind-1a2b');
    const granted = await run(bindPage, 'kubectl create clusterrolebinding', provider);
    assert.match(granted, shown('binding/bind-a-provider.md', 'rbac.authorization.k8s.io'));
    await whenReady();
  });

  it("go back to kube-bind's konnector, whose part drawbridge with another name plays here", async () => {
    await createKonnector();
    await prints(migratePage, 'helm uninstall', shown('binding/migrate-from-kube-bind.md', 'uninstalled'));
    await prints(migratePage, 'kubectl replace', shown('binding/migrate-from-kube-bind.md', 'replaced'));
    const { metadata } = await stage.when(apiServiceBindings, { name: 'widgets' });
    assert.equal(metadata.finalizers, undefined);
    await run(migratePage, '--replicas=1');
    await until('it to lead', async () => /^konnector-/.test(await stage.holder('kube-bind', 'kube-bind')), {
      timeoutMs: 60_000,
    });
  });

  it("replace kube-bind's konnector", async () => {
    await prints(migratePage, 'kubectl get crd', shown('binding/migrate-from-kube-bind.md', 'widgets.acme'));
    await prints(migratePage, 'permissionClaims', shown('binding/migrate-from-kube-bind.md', 'secrets'));
    await install();
    await prints(migratePage, '--replicas=0', shown('binding/migrate-from-kube-bind.md', 'scaled'));
    await runUntil(migratePage, 'kubectl get lease', shown('binding/migrate-from-kube-bind.md', 'HOLDER'));
    await whenReady();
    await run(migratePage, 'kubectl delete deployment/konnector');
    assert.ok(await copyOfBlue());
  });

  it('unbind a kind of a bundle', async () => {
    await prints(unbindPage, 'kubectl get sb,sbb', shown('binding/unbind-a-provider.md', 'READY'));
    await prints(
      unbindPage,
      '--cascade=orphan',
      shown('binding/unbind-a-provider.md', 'apiservicebindingbundle.kube-bind.io "acme"'),
    );
    await prints(unbindPage, 'kubectl delete sb widgets', shown('binding/unbind-a-provider.md', '"widgets" deleted'));
    await runUntil(unbindPage, 'kubectl get sb widgets', shown('binding/unbind-a-provider.md', 'NotFound'));
    assert.equal(await copyOfBlue(), undefined);
  });

  it('unbind a bundle, and keep the copies', async () => {
    await bindAll();
    await whenReady();
    await run(bindPage, 'widget.yaml');
    const { uid } = (await until('the copy', copyOfBlue, { timeoutMs: 30_000 })).metadata;
    await prints(unbindPage, 'unbind-policy=Orphan', shown('binding/unbind-a-provider.md', 'annotated'));
    await run(unbindPage, 'kubectl delete sbb acme');
    await runUntil(unbindPage, 'kubectl get sb widgets', shown('binding/unbind-a-provider.md', 'NotFound'));
    assert.equal((await copyOfBlue())?.metadata.uid, uid);
  });

  /** Creates a Deployment `konnector` without replicas: that of drawbridge with another name and account. */
  async function createKonnector(): Promise<void> {
    const found = await runAsReader(reader, 'kubectl get deployment/drawbridge-binding -n kube-bind -o json');
    const { apiVersion, kind, spec } = JSON.parse(found) as Manifest;
    const labels = { app: 'konnector' };
    const { annotations } = spec.template.metadata;
    const pod = { ...spec.template.spec, serviceAccountName: 'konnector' };
    const template = { metadata: { labels, annotations }, spec: pod };
    const metadata = { name: 'konnector', namespace: 'kube-bind' };
    const deployment = {
      apiVersion,
      kind,
      metadata,
      spec: { replicas: 0, selector: { matchLabels: labels }, template },
    };
    await stage.plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(deployment) });
    const rights = '--clusterrole=cluster-admin --serviceaccount=kube-bind:konnector';
    await runAsReader(reader, 'kubectl create serviceaccount konnector -n kube-bind');
    await runAsReader(reader, `kubectl create clusterrolebinding kube-bind-konnector ${rights}`);
  }
});
