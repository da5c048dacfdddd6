import assert from 'node:assert/strict';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { chart, type Manifest } from '../../../sandbox/chart/helm.ts';
import { whenServed } from '../../../sandbox/served.ts';
import { until } from '../../../sandbox/wait.ts';
import { ChartStage } from '../../support/chart-stage.ts';
import { commandsOf, type Reader, runAsReader, scriptOf, tryAsReader } from '../../support/page-commands.ts';
import { shown } from '../../support/shown-output.ts';

const page = 'docs/tasks/migrate-from-oz.md';
const kinds = ['podaccesstemplates', 'execaccesstemplates', 'podaccessrequests', 'execaccessrequests'];

describe('the commands of docs/tasks/migrate-from-oz.md, in this order', function () {
  this.timeout(240_000);
  let stage: ChartStage;
  let reader: Reader;
  const run = (words: string): Promise<string> => runAsReader(reader, scriptOf(page, words));
  const uids = (): Promise<string> =>
    runAsReader(reader, "kubectl get podaccesstemplates,execaccesstemplates -A -o jsonpath='{.items[*].metadata.uid}'");

  before(async () => {
    stage = await ChartStage.open();
    reader = { plane: stage.plane, folder: stage.plane.directory };
    await symlink(join(chart, '..'), join(reader.folder, 'charts'));
    await symlink(join(chart, '../../examples'), join(reader.folder, 'examples'));
    await runAsReader(reader, 'kubectl create namespace oz');
    for (const kind of kinds) {
      await stage.plane.kubectl(['apply', '-f', '-'], { input: await crdOfOz(kind) });
      await whenServed(stage.plane, `${kind}.crds.wizardofoz.co`);
    }
    const files = ['1-workload', '2-pod-access-template-target', '2-exec-access-template', '3-pod-access-request'];
    await runAsReader(
      reader,
      `kubectl apply -n payments ${files.map((file) => `-f examples/oz/${file}.yaml`).join(' ')}`,
    );
    await stage.plane.kubectl(['apply', '-f', '-'], {
      input: controllerOfOz.map((object) => stringify(object)).join('---\n'),
    });
  });
  after(() => stage?.close());

  it('save the templates', async () => {
    await run('templates.yaml');
    assert.match(await readFile(join(reader.folder, 'templates.yaml'), 'utf8'), /name: storefront-plain$/m);
  });

  it('end access, and stop Oz', async () => {
    assert.match(await run('--all -A'), shown('tasks/migrate-from-oz.md', 'storefront-console'));
    assert.match(await run('--replicas=0'), shown('tasks/migrate-from-oz.md', 'scaled'));
  });

  it('install drawbridge, which adopts the CRDs with their objects', async () => {
    const before = await uids();
    await writeFile(join(reader.folder, 'sandbox.json'), JSON.stringify(stage.values('own')));
    const [install = '', wait = ''] = commandsOf(page, 'helm install');
    const withValues = `${install} --values sandbox.json`;
    const { stdout } = await tryAsReader(
      reader,
      `exec 2>&1\n${withValues.replace('--take-ownership --force-conflicts', '')}`,
    );
    assert.match(stdout, /cannot be imported into the current release/);
    await runAsReader(reader, withValues);
    await stage.whenInstalled('own');
    assert.match(await runAsReader(reader, wait), shown('tasks/migrate-from-oz.md', 'rolled out'));
    assert.equal(await uids(), before);
    assert.match(await runAsReader(reader, 'kubectl explain podaccesstemplate.spec.author'), /DESCRIPTION/);
  });

  it('make the administrator the author of each template, which is then ready', async () => {
    assert.match(await run('kubectl patch'), shown('tasks/migrate-from-oz.md', 'patched'));
    for (const name of ['storefront-exec', 'ledger-exec']) {
      const other = scriptOf(page, 'kubectl patch').replace(
        'podaccesstemplate storefront-plain',
        `execaccesstemplate ${name}`,
      );
      await runAsReader(reader, other);
    }
    const expected = shown('tasks/migrate-from-oz.md', 'NAMESPACE');
    let templates = '';
    const areReady = async (): Promise<boolean> => {
      templates = await run('execaccesstemplates -A\n');
      return expected.test(templates);
    };
    await until('the templates to be ready', areReady, { timeoutMs: 60_000 }).catch(() =>
      assert.match(templates, expected),
    );
  });
});

/** A CRD with the kind of Oz, and another schema than that of drawbridge. */
async function crdOfOz(kind: string): Promise<string> {
  const crd = parse(await readFile(join(chart, `files/crds/${kind}.yaml`), 'utf8')) as Manifest;
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const versions = [{ ...crd['spec'].versions[0], schema: { openAPIV3Schema }, additionalPrinterColumns: [] }];
  return stringify({ ...crd, spec: { ...crd['spec'], versions } });
}

const labels = { 'app.kubernetes.io/name': 'oz' };
const webhooks = (kind: string): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind,
  metadata: { name: 'oz-webhook', labels },
});
/** What the chart of Oz installs besides the CRDs, without what these commands do not see. */
const controllerOfOz = [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'oz-controller-manager', namespace: 'oz', labels },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'manager', image: 'oz' }] } },
    },
  },
  webhooks('MutatingWebhookConfiguration'),
  webhooks('ValidatingWebhookConfiguration'),
];
