import { clusterInventories, managerAccount } from '../../../src/api/inventory/names.ts';
import { roleBindings, roles, serviceAccounts } from '../../../src/api/resources.ts';
import type { Entry } from '../../../src/inventory/entry.ts';
import { formatTime } from '../../../src/kit/clock.ts';
import { own } from '../../../src/kit/json-value.ts';
import type { AccessQuestion, Client, TokenUser } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { RecordedEvent } from '../../../src/kube/event-object.ts';
import { covers, type RbacRule } from '../../../src/rbac/rule-cover.ts';
import { MemoryCluster } from '../binding/memory-cluster.ts';
import { SimulatedClock } from '../simulated-clock.ts';

/** A minimal API server for the accounts of components. It answers access reviews from its Roles and RoleBindings. */
export class MemoryAccess {
  readonly clock = new SimulatedClock();
  readonly cluster = new MemoryCluster(this.clock);
  readonly questions: AccessQuestion[] = [];
  readonly events: RecordedEvent[] = [];
  readonly reviewed: string[] = [];
  /** Secrets that users may read, as `user secret`. */
  readonly readers = new Set<string>();
  /** Number of access reviews that still ignore the last grant. */
  lag = 0;
  /** By token. */
  readonly users = new Map<string, TokenUser>();
  tokens = 0;
  /** IDs (jti) of the next tokens; undefined for tokens without an ID. */
  jti: string | undefined = 'id';

  readonly recorder = { record: (event: RecordedEvent) => void this.events.push(event), close: async () => {} };

  readonly client: Client = {
    ...this.cluster.client,
    isAllowed: async (question) => {
      this.questions.push(question);
      return this.#isAllowed(question);
    },
    createToken: async (account, { audiences, expirationSeconds }) => {
      const isHome = account.name === managerAccount;
      if (!isHome && !this.cluster.find(serviceAccounts, account))
        throw new ApiError(404, 'NotFound', 'no such account');
      const payload = {
        sub: account.name,
        aud: audiences ?? ['api'],
        n: ++this.tokens,
        jti: this.jti && `${this.jti}-${this.tokens}`,
      };
      const token = `h.${Buffer.from(JSON.stringify(payload)).toString('base64url')}.s`;
      return { token, expiresAt: formatTime(this.clock.now() + expirationSeconds * 1000) };
    },
    reviewToken: async (token) => {
      this.reviewed.push(token);
      return this.users.get(token);
    },
  };

  entry(more: Partial<Entry> = {}, uid = '0b0e3c1e-8b7e-4c7c-9a63-4c1f7a1f0001'): Entry {
    return {
      ref: { namespace: 'fleet', name: 'rt-1', uid },
      resourceVersion: '1',
      deleting: false,
      finalizers: [],
      labels: {},
      annotations: {},
      mode: 'managed',
      suspended: false,
      kubeconfigSecretRef: undefined,
      kubeconfigSetBy: undefined,
      disabled: new Set(),
      named: [],
      bytes: 0,
      content: { spec: {}, status: { outputs: {} } },
      components: [],
      waitingFor: undefined,
      conditions: [],
      ...more,
    };
  }

  /** Whether the stored RBAC objects allow `verb resource name` to a component in the namespace. */
  may(user: string, verb: string, resource: string, name: string): boolean {
    const [plural = '', subresource] = resource.split('/');
    const group = plural === clusterInventories.plural ? clusterInventories.group : '';
    return this.#holds({
      user,
      verb,
      group,
      resource: plural,
      namespace: 'fleet',
      name,
      ...(subresource ? { subresource } : {}),
    });
  }

  #isAllowed(question: AccessQuestion): boolean {
    if (this.lag > 0) {
      this.lag -= 1;
      return false;
    }
    return this.readers.has(`${question.user} ${question.name}`) || this.#holds(question);
  }

  #holds({ user, verb, group, resource, subresource, namespace, name = '' }: AccessQuestion): boolean {
    const asked: RbacRule = {
      verbs: [verb],
      apiGroups: [group],
      resources: [subresource ? `${resource}/${subresource}` : resource],
      resourceNames: [name],
    };
    return this.cluster.list(roleBindings).some((binding) => {
      const subjects = own(binding, 'subjects');
      const isSubject =
        Array.isArray(subjects) &&
        subjects.some((one) => `system:serviceaccount:${own(one, 'namespace')}:${own(one, 'name')}` === user);
      const role = this.cluster.find(roles, {
        namespace: binding.metadata.namespace ?? '',
        name: String(own(own(binding, 'roleRef'), 'name')),
      });
      return isSubject && binding.metadata.namespace === namespace && role
        ? covers(role['rules'] as RbacRule[], [asked])
        : false;
    });
  }
}
