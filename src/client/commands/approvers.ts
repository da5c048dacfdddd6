import type { KubeObject, Resource } from '../../api/object.ts';
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from '../../api/resources.ts';
import { findObject } from '../../kube/client.ts';
import { uncovered } from '../../rbac/rule-cover.ts';
import { findTemplate, type TypedObject, templateResource } from '../access-requests.ts';
import { approversText, counts, missingBindingText } from '../approver-text.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { unlessForbidden } from '../problem.ts';
import { roleOf, rulesIn, subjectsIn } from '../rbac-view.ts';
import { templateSpecOf } from '../request-state.ts';

/** A holder of the verb approve. `countsFor`: entries for which its votes can count. */
interface Approver {
  readonly kind: string;
  readonly name: string;
  readonly by: string;
  readonly countsFor: string;
}

export const approvers: Command = {
  name: 'approvers',
  summary: 'Show who can approve requests through a template',
  details:
    'Lists the users, groups, and ServiceAccounts that hold the verb approve on the template by a RoleBinding or ClusterRoleBinding. If none of the groups and ServiceAccounts can vote for an entry of approvals.all, prints the command that binds its groups. A user is enough only for an entry without groups, because the server learns the groups of users when they vote. If you may not read all bindings and roles, prints what you may not read, and whom to ask.',
  args: [{ name: 'TEMPLATE', complete: 'templates' }],
  examples: ['approvers payments-shell'],
  async run({ args, io, connect }: Context) {
    const form = outputForm(args);
    const connection = await connect();
    const template = await findTemplate(connection, args.positionals[0] ?? '');
    const needed = approversText(template.object);
    io.printError(needed === '' ? 'the template requires no approvals\n' : `needed: ${needed}\n`);
    const unread = new Set<string>();
    const printer = new Printer(io, form, approverTable);
    const holders = await holdersOf(connection, template, unread);
    printer.add(holders);
    printer.end();
    // Without approvals, no entry can lack a holder.
    if (needed === '') return exits.done;
    if (unread.size > 0) io.printError(`${unreadText(unread, holders)}\n`);
    const missing = unread.size > 0 ? '' : missingBindingText(template.object, holders, connection.where);
    if (missing !== '') io.printError(`${missing}\n`);
    return exits.done;
  },
};

/** `unread`: such as `the ClusterRoleBindings`. */
function unreadText(unread: ReadonlySet<string>, holders: readonly Approver[]): string {
  const [who, whom] =
    holders.length === 0
      ? ['who can approve', 'an administrator']
      : ['who else can approve', 'one of the people above, or an administrator'];
  return `not checked: ${who}, because you may not read ${[...unread].join(' or ')}; ask ${whom}`;
}

/** Adds to `unread` what the user may not read. */
async function holdersOf(connection: ClusterConnection, template: TypedObject, unread: Set<string>) {
  const { cluster, namespace } = connection;
  const read = async <T>(what: string, reading: Promise<T>): Promise<T | undefined> => {
    const found = await unlessForbidden(reading);
    if (!(found instanceof Error)) return found;
    unread.add(what);
    return undefined;
  };
  const list = async (what: string, resource: Resource, scope: object): Promise<KubeObject[]> =>
    (await read(what, cluster.client.list(resource, scope)))?.items ?? [];
  const bindings = [
    ...(await list(`the RoleBindings of namespace ${namespace}`, roleBindings, { namespace })),
    ...(await list('the ClusterRoleBindings', clusterRoleBindings, {})),
  ];
  const mayApproveByRole = new Map<string, boolean>();
  const found: Approver[] = [];
  for (const binding of bindings) {
    const { kind, name } = roleOf(binding);
    const key = `the ${kind} ${name}`;
    const [resource, target] = kind === 'Role' ? [roles, { namespace, name }] : [clusterRoles, { name }];
    const may =
      mayApproveByRole.get(key) ??
      mayApprove(await read(key, findObject(cluster.client, resource, target, {})), template);
    mayApproveByRole.set(key, may);
    if (may) found.push(...subjectsOf(binding, template));
  }
  return found;
}

function mayApprove(role: KubeObject | undefined, { type, object }: TypedObject): boolean {
  const { group, plural } = templateResource(type);
  const { name } = object.metadata;
  const wanted = { apiGroups: [group], resources: [plural], resourceNames: [name] as [string], verbs: ['approve'] };
  return uncovered(rulesIn(role), [wanted]).length === 0;
}

function subjectsOf(binding: KubeObject, { object }: TypedObject): Approver[] {
  const all = templateSpecOf(object).accessConfig?.approvals?.all ?? [];
  return subjectsIn(binding).map((subject) => {
    const entries = all.filter((entry) => counts(subject, entry, object)).map(({ name }) => name);
    const countsFor = subject.kind === 'User' ? 'as their groups allow' : entries.join(', ') || 'nothing';
    return { ...subject, by: `${binding.kind} ${binding.metadata.name}`, countsFor };
  });
}

const approverTable: Presentation<Approver> = {
  columns: [
    { title: 'KIND', text: ({ kind }) => kind },
    { title: 'NAME', text: ({ name }) => name },
    { title: 'COUNTS FOR', text: ({ countsFor }) => countsFor },
    { title: 'BY', text: ({ by }) => by },
  ],
  object: (approver) => approver,
  name: ({ name }) => name,
};
