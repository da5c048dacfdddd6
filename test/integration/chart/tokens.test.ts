import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { chart, Helm, type Manifest } from '../../../sandbox/chart/helm.ts';
import { createAuthority } from '../../../sandbox/pki.ts';
import { podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { type Rule, rulesOf } from '../../support/chart-manifests.ts';
import type { Person } from '../../support/person.ts';
import { testNamespace } from '../../support/plane.ts';
import { accountUser, childMetadata, podWith } from '../../support/server-token.ts';

const home = 'drawbridge-system';
const accounts = ['drawbridge', 'drawbridge-binding', 'drawbridge-inventory'];
const dryRun = 'dryRun=All';

/** One verb on one resource, optionally of one name, in one namespace or, if empty, everywhere. */
interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly name?: string;
  readonly namespace: string;
}

const versions: Readonly<Record<string, string>> = {
  'crds.wizardofoz.co': 'v1alpha1',
  'access.drawbridge.dev': 'v1alpha1',
  'argoproj.io': 'v1alpha1',
  'gateway.drawbridge.dev': 'v1alpha1',
  'kube-bind.io': 'v1alpha2',
  'inventory.drawbridge.dev': 'v1alpha1',
};
const ofTheCluster = new Set([
  'apiservices',
  'customresourcedefinitions',
  'namespaces',
  'mutatingwebhookconfigurations',
  'validatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'selfsubjectrulesreviews',
  'subjectaccessreviews',
  'tokenreviews',
  'apiservicebindings',
  'apiservicebindingbundles',
  'componentreconcilers',
]);

describe('a client with the token of a ServiceAccount of the chart', () => {
  let stage: AccessStage;
  let manifests: Manifest[];
  /** Names of objects that the server created for a request, in the stage's namespace. */
  let child: string;
  let entries: string;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    entries = await testNamespace('entries');
    const helm = new Helm({ program: stage.plane.binaries.helm, home: stage.plane.directory });
    const rendered = await helm.template(home, {
      features: { access: true, binding: true, inventory: true },
      binding: { bindable: ['widgets.example.org'], claimable: ['configmaps', 'secrets'] },
      inventory: { namespaces: [entries] },
    });
    manifests = rendered.filter(
      ({ kind, metadata }) =>
        /^(Cluster)?Role(Binding)?$/.test(kind) ||
        (kind.endsWith('WebhookConfiguration') && ofInventory.has(metadata.name)),
    );
    await stage.plane.call('POST', '/api/v1/namespaces', { metadata: { name: 'kube-bind' } });
    const input = manifests.map((manifest) => stringify(manifest)).join('---\n');
    await stage.plane.kubectl(['apply', '-f', '-'], { input });
    child = (await stage.createReady(stage.alice, podRequest('own', { duration: '10m' }))).status?.podName ?? '';
    const placed = placesOfObjects().flatMap((namespace) => othersIn(namespace));
    await stage.plane.kubectl(['apply', '-f', '-'], { input: placed.map((one) => stringify(one)).join('---\n') });
    await stage.policiesAre('in force');
  });

  after(async () => {
    if (!stage) return;
    const made = [
      ...manifests.filter(({ metadata }) => !/^drawbridge(-grants)?$/.test(metadata.name)),
      ...placesOfObjects().flatMap((namespace) => othersIn(namespace)),
    ];
    const input = made.map((manifest) => stringify(manifest)).join('---\n');
    await stage.plane.kubectl(['delete', '-f', '-', '--ignore-not-found', '--wait=false'], { input });
    stage.ignoreEarlierCalls();
    await stage.close();
  });

  it('can make only the calls that docs/reference/token-permissions.md lists, although its roles grant more', async () => {
    const found: string[] = [];
    for (const account of accounts) {
      const holder = await accountUser(stage.plane, account);
      const opened = await Promise.all(
        rightsOf(account).map(async (right) => [right, await reach(holder, right)] as const),
      );
      found.push(...rowsOf(account, opened));
    }
    const page = readFileSync(join(chart, '../../docs/reference/token-permissions.md'), 'utf8');
    const listed = page.split('\n').filter((line) => /^\| `drawbridge[a-z-]*` \|/.test(line));
    assert.equal(listed.join('\n'), found.join('\n'));
  });

  for (const [account, name] of [
    ['drawbridge', 'drawbridge-podaccessrequests'],
    ['drawbridge-inventory', 'drawbridge-clusterinventories'],
  ] as const) {
    it(`can change only the caBundle of webhook configurations: ${account}`, async () => {
      const holder = await accountUser(stage.plane, account);
      for (const plural of ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations']) {
        const { webhooks, url } = await webhooksOf(plural, name);
        assert.ok(webhooks.length > 0);
        const patch = (change: object): Promise<ApiAnswer> => holder.call('PATCH', `${url}?${dryRun}`, change);
        const refused: object[] = [
          { webhooks: [] },
          { webhooks: [...webhooks, { ...webhooks[0], name: 'more.example.org' }] },
          ...[
            { rules: [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ['*'] }] },
            { failurePolicy: 'Ignore', timeoutSeconds: 30 },
            { matchConditions: [{ name: 'never', expression: 'false' }] },
            { namespaceSelector: { matchLabels: { a: 'b' } } },
            { objectSelector: { matchLabels: { a: 'b' } } },
            { clientConfig: { url: 'https://attacker.example.org' } },
            {
              clientConfig: {
                ...webhooks[0]?.clientConfig,
                service: { ...webhooks[0]?.clientConfig.service, path: '/other' },
              },
            },
            { clientConfig: { ...webhooks[0]?.clientConfig, service: { namespace: 'attacker', name: 'attacker' } } },
          ].map((change) => ({ webhooks: webhooks.map((webhook) => ({ ...webhook, ...change })) })),
          { metadata: { labels: { 'app.kubernetes.io/name': 'other' } } },
          { metadata: { finalizers: ['example.org/hold'] } },
          { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'gone', uid: 'gone' }] } },
        ];
        for (const change of refused) {
          const { status, body } = await patch(change);
          assert.equal(status, 403, JSON.stringify(change));
          assert.match((body as { message: string }).message, /TokenMisused/);
        }
        const { status, body } = await patch({ webhooks: elsewhere(webhooks) });
        assert.equal(status, 200, JSON.stringify(body));
      }
    });
  }

  /** Every permission that the roles of the account grant, once. */
  function rightsOf(account: string): Right[] {
    const bindings = manifests.filter(
      ({ kind, subjects }) =>
        kind.endsWith('Binding') && subjects?.some(({ name }: Manifest['metadata']) => name === account),
    );
    const rights = bindings.flatMap(({ kind, metadata, roleRef }) => {
      const namespace = kind === 'ClusterRoleBinding' ? '' : (metadata.namespace ?? '');
      const role = manifests.find(
        (one) =>
          one.kind === roleRef.kind &&
          one.metadata.name === roleRef.name &&
          (one.kind === 'ClusterRole' || one.metadata.namespace === namespace),
      );
      assert.ok(role, `${roleRef.kind} ${roleRef.name}`);
      return rulesOf(role).flatMap((rule) => rightsIn(rule, namespace));
    });
    return [...new Map(rights.map((right) => [JSON.stringify(right), right])).values()];
  }

  /** The places where the permission works, as on that page. Undefined: nowhere. */
  async function reach(holder: Person, right: Right): Promise<string | undefined> {
    const places = placesOf(right);
    const open = await Promise.all(places.map((place) => isAllowed(holder, right, place, foreign)));
    if (open.every(Boolean) && !right.resource.endsWith('webhookconfigurations')) return whereOf(right);
    if (right.resource.endsWith('webhookconfigurations')) {
      if (right.verb !== 'patch') return whereOf(right);
      const { webhooks } = await webhooksOf(right.resource, right.name ?? '');
      if (webhooks.length === 0) return undefined;
      const change = { webhooks: elsewhere(webhooks) };
      return (await isAllowed(holder, right, '', { ...foreign, change })) ? 'only `caBundle`' : undefined;
    }
    const ours = await Promise.all(places.map((place) => isAllowed(holder, right, place, madeForRequest)));
    assert.ok(!open.some(Boolean), `${JSON.stringify(right)} is allowed in some of ${places}`);
    if (!ours.some(Boolean)) return undefined;
    const creates = right.verb === 'create';
    assert.deepEqual(ours, [true, !creates, !creates], JSON.stringify(right));
    return `only what carries the marks of a request${creates ? ', and not in `kube-system` or the namespace of drawbridge' : ''}`;
  }

  /** The namespaces in which the test tries a permission. A cluster-scoped permission has one. */
  function placesOf({ namespace, resource }: Right): string[] {
    if (ofTheCluster.has(resource.split('/')[0] ?? '')) return [''];
    return namespace === '' ? [stage.namespace, 'kube-system', home] : [namespace];
  }

  function whereOf({ namespace, resource }: Right): string {
    if (ofTheCluster.has(resource.split('/')[0] ?? '')) return 'the cluster';
    if (namespace === '') return 'every namespace';
    if (namespace === home) return 'the namespace of drawbridge';
    return namespace === entries ? 'each of `inventory.namespaces`' : `\`${namespace}\``;
  }

  async function isAllowed(holder: Person, right: Right, place: string, target: Target): Promise<boolean> {
    const { status, body } = await attempt(holder, right, place, target);
    assert.ok(status < 500, `${JSON.stringify(right)}: ${status} ${JSON.stringify(body)}`);
    return status !== 403;
  }

  /** A call that needs the permission and changes nothing. */
  function attempt(holder: Person, right: Right, place: string, target: Target): Promise<ApiAnswer> {
    const { verb, group, resource: path } = right;
    const [resource = '', subresource] = path.split('/');
    const name = right.name ?? target.name();
    const api = group === '' ? '/api/v1' : `/apis/${group}/${versions[group] ?? 'v1'}`;
    const collection = `${api}${place === '' ? '' : `/namespaces/${place}`}/${resource}`;
    const selected = right.name === undefined ? '' : `&fieldSelector=metadata.name%3D${name}`;
    const one = `${collection}/${name}${subresource === undefined ? '' : `/${subresource}`}`;
    switch (verb) {
      case 'list':
        return holder.call('GET', `${collection}?limit=1${selected}`);
      case 'watch':
        return holder.call('GET', `${collection}?watch=true&timeoutSeconds=1${selected}`);
      case 'get':
        return holder.call('GET', subresource === 'exec' ? `${one}?command=true&stdout=true` : one);
      case 'delete':
        return holder.call('DELETE', `${one}?${dryRun}`);
      case 'update':
        return holder.call('PUT', `${one}?${dryRun}`, { metadata: { name } });
      case 'patch':
        return holder.call('PATCH', `${one}?${dryRun}`, target.change);
      default:
        assert.equal(verb, 'create');
    }
    if (subresource === 'exec') return holder.call('POST', `${one}?command=true&stdout=true`);
    if (subresource !== undefined) return holder.call('POST', `${one}?${dryRun}`, {});
    // A create with a name is a server-side apply of a missing object.
    if (right.name !== undefined) {
      assert.equal(resource, 'configmaps');
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: place } };
      return holder.call('APPLY', `${one}?${dryRun}&fieldManager=holder`, object);
    }
    return holder.call('POST', `${collection}?${dryRun}`, target.created(resource));
  }

  async function webhooksOf(plural: string, name: string): Promise<{ url: string; webhooks: readonly Webhook[] }> {
    const url = `/apis/admissionregistration.k8s.io/v1/${plural}/${name}`;
    const { body } = await stage.plane.call('GET', url);
    return { url, webhooks: (body as { webhooks?: Webhook[] }).webhooks ?? [] };
  }

  const placesOfObjects = (): string[] => [stage.namespace, 'kube-system', home, entries];

  /** The object of the call, if policies check its owner. */
  function othersIn(namespace: string): Manifest[] {
    const object = (kind: string, name: string, fields: object): Manifest => ({
      apiVersion: kind === 'Pod' ? 'v1' : 'rbac.authorization.k8s.io/v1',
      kind,
      metadata: { name, namespace },
      ...fields,
    });
    const { spec } = podWith({ schedulerName: 'none' });
    return [
      object('Role', other, { rules: [] }),
      object('Role', childMetadata().name, { rules: [] }),
      object('RoleBinding', other, { roleRef: roleRefTo(other), subjects: [] }),
      object('Pod', other, { spec }),
    ];
  }

  const foreign: Target = {
    name: () => other,
    change: { metadata: { annotations: { 'example.org/holder': 'yes' } } },
    created: (resource) =>
      createdAs({ name: 'another' }, roleRefTo(other))[resource] ?? { metadata: { name: 'another' } },
  };
  const madeForRequest: Target = {
    name: () => child,
    change: { subjects: null },
    created: (resource) => createdAs(childMetadata(), roleRefTo(childMetadata().name))[resource] ?? {},
  };
});

/** The object of a call. */
interface Target {
  readonly name: () => string;
  readonly change: object;
  readonly created: (resource: string) => object;
}

interface Webhook {
  readonly clientConfig: { readonly caBundle?: string; readonly service: object };
}

const ofInventory: ReadonlySet<string> = new Set(['drawbridge-clusterinventories', 'drawbridge-componentreconcilers']);

/** Another CA and another path. */
const elsewhere = (webhooks: readonly Webhook[]): object[] => {
  const caBundle = Buffer.from(createAuthority('other').certificate).toString('base64');
  return webhooks.map(({ clientConfig: { service }, ...webhook }) => ({
    ...webhook,
    clientConfig: { caBundle, service },
  }));
};

/** Name of objects that belong to no request. */
const other = 'foreign';

const roleRefTo = (name: string): object => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name });

const createdAs = (metadata: object, roleRef: object): Record<string, object> => ({
  pods: podWith({}, {}, metadata),
  roles: { metadata, rules: [] },
  rolebindings: { metadata, roleRef },
});

const rightsIn = ({ apiGroups, resources, verbs, resourceNames = [] }: Rule, namespace: string): Right[] =>
  apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        (resourceNames.length > 0 ? resourceNames : [undefined]).map((name) => ({
          verb,
          group,
          resource,
          namespace,
          ...(name === undefined ? {} : { name }),
        })),
      ),
    ),
  );

/** The rows of the table in docs/reference/token-permissions.md. Resources with the same verbs in the same place share a row. */
function rowsOf(account: string, reached: readonly (readonly [Right, string | undefined])[]): string[] {
  const open = reached.flatMap(([right, where]) => (where === undefined ? [] : [{ ...right, where }]));
  const verbsOn = grouped(
    open,
    ({ where, resource, name = '' }) => [where, resource, name],
    ({ verb }) => verb,
  );
  const named = grouped(
    verbsOn.map(({ key: [where = '', resource = '', name = ''], all }) => ({ where, resource, name, verbs: all })),
    ({ where, resource, verbs }) => [where, resource, verbs],
    ({ name }) => name,
  );
  const rows = grouped(
    named.map(({ key: [where = '', resource, verbs = ''], all }) => {
      const what = `\`${resource}\`${all === '' ? '' : ` of the name ${all.replaceAll(/[^ ,]+/g, '`$&`')}`}`;
      return { where, verbs, what };
    }),
    ({ where, verbs }) => [verbs, where],
    ({ what }) => what,
  );
  return rows.map(({ key: [verbs, where], all }) => `| \`${account}\` | ${verbs} | ${all} | ${where} |`).sort();
}

/** For each key, the distinct values of its items, sorted and separated by commas. */
function grouped<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string[],
  partOf: (item: Item) => string,
): { readonly key: string[]; readonly all: string }[] {
  const groups = new Map<string, Set<string>>();
  for (const item of items) {
    const key = JSON.stringify(keyOf(item));
    groups.set(key, (groups.get(key) ?? new Set()).add(partOf(item)));
  }
  return [...groups].map(([key, parts]) => ({ key: JSON.parse(key) as string[], all: [...parts].sort().join(', ') }));
}
