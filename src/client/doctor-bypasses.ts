import { accesses } from '../api/access/kinds.ts';
import { type RbacRule, uncovered } from '../rbac/rule-cover.ts';
import type { Check } from './doctor-check.ts';
import { type BoundPermissions, cachedPermissions } from './rbac-view.ts';

const templates = accesses.map(({ template }) => template.resource.plural);
const requests = accesses.map(({ request }) => request.resource.plural);
const { group } = accesses[0].request.resource;
const permission = (apiGroup: string, resource: string, verb: string): RbacRule => ({
  apiGroups: [apiGroup],
  resources: [resource],
  verbs: [verb],
});

/** A way to enter pods without a grant, or to get one without approval. */
interface Bypass {
  readonly name: string;
  /** A holder of any one of these has the bypass. */
  readonly permissions: readonly RbacRule[];
  /** A clause whose subject is the holder. */
  readonly effect: string;
  /** `allNamespaces`: ClusterRoleBindings; `serverNamespace`: also RoleBindings there. */
  readonly onlyIn?: 'serverNamespace' | 'allNamespaces';
}

const bypasses: readonly Bypass[] = [
  {
    name: 'nodes/proxy',
    permissions: [permission('', 'nodes/proxy', 'get'), permission('', 'nodes/proxy', 'create')],
    effect: 'can enter every pod of every node',
    onlyIn: 'allNamespaces',
  },
  {
    name: 'exec everywhere',
    // Before Kubernetes 1.35, a WebSocket connection needs only the verb get.
    permissions: [
      ...['pods/exec', 'pods/attach', 'pods/portforward'].flatMap((resource) =>
        ['create', 'get'].map((verb) => permission('', resource, verb)),
      ),
      ...['update', 'patch'].map((verb) => permission('', 'pods/ephemeralcontainers', verb)),
    ],
    effect: 'can enter pods without a request',
  },
  {
    name: 'escalate or bind',
    permissions: ['roles', 'clusterroles'].flatMap((resource) =>
      ['escalate', 'bind'].map((verb) => permission('rbac.authorization.k8s.io', resource, verb)),
    ),
    effect: 'can grant itself permissions that it does not hold',
  },
  {
    name: 'impersonate',
    permissions: [permission('', 'users', 'impersonate'), permission('', 'groups', 'impersonate')],
    effect: 'can request and vote as another user',
    onlyIn: 'allNamespaces',
  },
  {
    name: 'template writers',
    permissions: templates.flatMap((plural) =>
      ['create', 'update', 'patch'].map((verb) => permission(group, plural, verb)),
    ),
    effect: 'can let others request access, up to its own permissions',
  },
  {
    name: 'status writers',
    permissions: [...requests, ...templates].flatMap((plural) =>
      ['update', 'patch'].map((verb) => permission(group, `${plural}/status`, verb)),
    ),
    effect: 'can write status, which only the server may write; the policy drawbridge-access denies it',
  },
  {
    name: 'server Secrets',
    permissions: ['get', 'list', 'watch'].map((verb) => permission('', 'secrets', verb)),
    effect: 'can read the signing keys',
    onlyIn: 'serverNamespace',
  },
  {
    name: 'server tokens',
    permissions: [permission('', 'serviceaccounts/token', 'create')],
    effect: 'can act as the server',
    onlyIn: 'serverNamespace',
  },
];

/** Users and groups of Kubernetes itself. */
const builtIn: readonly string[] = [
  'Group system:masters',
  'User system:kube-controller-manager',
  'User system:kube-scheduler',
];

/** What kubeadm and others that install Kubernetes bind, by ClusterRoleBindings of any name. */
const installed: readonly string[] = [
  'User kube-apiserver-kubelet-client ClusterRole system:kubelet-api-admin',
  'Group kubeadm:cluster-admins ClusterRole cluster-admin',
];

/**
 * By `builtIn`, by `installed`, or by the binding that Kubernetes creates for a controller. Neither
 * the prefix `system:` proves it (`system:authenticated` is every user), nor labels, which any
 * author sets.
 */
export function isBuiltIn({
  subject: { kind, name },
  binding,
  role,
  namespace,
}: Omit<BoundPermissions, 'rules'>): boolean {
  if (builtIn.includes(`${kind} ${name}`)) return true;
  if (namespace === undefined && installed.includes(`${kind} ${name} ${role}`)) return true;
  const [, controller] = /^kube-system\/(.+)$/.exec(name) ?? [];
  const own = `system:controller:${controller}`;
  return kind === 'ServiceAccount' && namespace === undefined && binding === own && role === `ClusterRole ${own}`;
}

const bypassCheck = ({ name, permissions, effect, onlyIn }: Bypass): Check => ({
  name,
  ok: 'no subject besides those of Kubernetes and of the namespace of the server',
  async faults(connection, { serverNamespace }) {
    const held = (await cachedPermissions(connection)).filter((one) => {
      const { subject, namespace } = one;
      const isOurs = subject.kind === 'ServiceAccount' && subject.name.startsWith(`${serverNamespace}/`);
      const isRelevantNamespace =
        onlyIn === undefined ||
        namespace === undefined ||
        (onlyIn === 'serverNamespace' && namespace === serverNamespace);
      return !isBuiltIn(one) && !isOurs && isRelevantNamespace;
    });
    return held
      .filter(({ rules }) => permissions.some((wanted) => uncovered(rules, [wanted]).length === 0))
      .map(({ subject, namespace, by }) => {
        const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
        return `${subject.kind} ${subject.name} ${effect}${where} (${by})`;
      });
  },
});

export const bypassChecks: readonly Check[] = bypasses.map(bypassCheck);
